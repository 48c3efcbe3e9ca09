"""Names of functions of one number that both libraries have as methods, for generated tests."""

ELEMENTWISE = [
    "abs", "acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh",
    "deg2rad", "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "frac", "i0",
    "lgamma", "log", "log10", "log1p", "log2", "logit", "nan_to_num", "neg", "positive", "rad2deg",
    "reciprocal", "relu", "round", "rsqrt", "sgn", "sigmoid", "sign", "sin", "sinc", "sinh", "sqrt",
    "square", "tan", "tanh", "trunc",
]  # fmt: skip
