"""Small things people do with modules and their parameters."""

from .programs import program


@program
def param_list(m):
    layer = m.nn.Linear(2, 2)
    return [n for n, _ in layer.named_parameters()], sum(p.numel() for p in layer.parameters())


@program
def state_dict_shares(m):
    layer = m.nn.Linear(2, 2)
    s = layer.state_dict()
    s["weight"].zero_()
    return layer.weight


@program
def module_setattr(m):
    layer = m.nn.Linear(2, 2)
    layer.weight = m.ones(2, 2)


@program
def module_weight_data(m):
    layer = m.nn.Linear(2, 2)
    layer.weight.data.fill_(1.0)
    layer.bias.data = m.zeros(2)
    return layer(m.ones(1, 2))
