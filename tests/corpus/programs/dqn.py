"""DQN with a replay buffer and a target network, on a small corridor."""

import argparse
import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from beginning import beginning

parser = argparse.ArgumentParser()
parser.add_argument("--episodes", type=int, default=8)
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--hidden", type=int, default=32)
args = parser.parse_args()
Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory(object):
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, args.hidden)
        self.layer2 = nn.Linear(args.hidden, args.hidden)
        self.layer3 = nn.Linear(args.hidden, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.layer3(x)


class Corridor:
    """Walk to the right end; the state is a one-hot place and the time."""

    def reset(self):
        self.place, self.time = 2, 0
        return self.state()

    def state(self):
        return [float(n == self.place) for n in range(5)] + [self.time / 10]

    def step(self, action):
        self.place += 1 if action == 1 else -1
        self.time += 1
        done = self.place in (0, 4) or self.time == 10
        return self.state(), float(self.place == 4) - 0.01, done


BATCH_SIZE, GAMMA, TAU = args.batch_size, 0.9, 0.05
start = beginning(lambda: DQN(6, 2).state_dict())
policy_net, target_net = DQN(6, 2), DQN(6, 2)
policy_net.load_state_dict(start)
target_net.load_state_dict(policy_net.state_dict())
optimizer = torch.optim.AdamW(policy_net.parameters(), lr=1e-3, amsgrad=True)
memory, env = ReplayMemory(1000), Corridor()
random.seed(0)


def select_action(state, eps):
    if random.random() > eps:
        with torch.no_grad():
            return policy_net(state).max(1).indices.view(1, 1)
    return torch.tensor([[random.randrange(2)]], dtype=torch.long)


def optimize_model():
    if len(memory) < BATCH_SIZE:
        return None
    batch = Transition(*zip(*memory.sample(BATCH_SIZE)))
    non_final_mask = torch.tensor(
        tuple(map(lambda s: s is not None, batch.next_state)), dtype=torch.bool
    )
    non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
    state_batch = torch.cat(batch.state)
    action_batch = torch.cat(batch.action)
    reward_batch = torch.cat(batch.reward)
    state_action_values = policy_net(state_batch).gather(1, action_batch)
    next_state_values = torch.zeros(BATCH_SIZE)
    with torch.no_grad():
        next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values
    expected = (next_state_values * GAMMA) + reward_batch
    loss = nn.SmoothL1Loss()(state_action_values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss


steps = 0
for episode in range(args.episodes):
    state = torch.tensor(env.reset(), dtype=torch.float32).unsqueeze(0)
    done = False
    while not done:
        action = select_action(state, eps=max(0.1, 0.9 - 0.02 * steps))
        steps += 1
        observation, reward, done = env.step(action.item())
        reward = torch.tensor([reward])
        next_state = None
        if not done:
            next_state = torch.tensor(observation, dtype=torch.float32).unsqueeze(0)
        memory.push(state, action, next_state, reward)
        state = next_state
        loss = optimize_model()
        if loss is not None:
            print("loss %d: %.6f" % (steps, loss.item()))
        target_state = target_net.state_dict()
        policy_state = policy_net.state_dict()
        for key in policy_state:
            target_state[key] = policy_state[key] * TAU + target_state[key] * (1 - TAU)
        target_net.load_state_dict(target_state)
