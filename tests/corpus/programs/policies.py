"""REINFORCE and actor-critic on a small control problem; actions come from a file of draws."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from beginning import beginning
from torch.distributions import Categorical

parser = argparse.ArgumentParser()
parser.add_argument("--episodes", type=int, default=5)
parser.add_argument("--length", type=int, default=8)
parser.add_argument("--hidden", type=int, default=24)
args = parser.parse_args()


class Policy(nn.Module):
    def __init__(self):
        super(Policy, self).__init__()
        self.affine1 = nn.Linear(3, args.hidden)
        self.action_head = nn.Linear(args.hidden, 2)
        self.value_head = nn.Linear(args.hidden, 1)
        self.saved_actions, self.rewards = [], []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


class Pole:
    """A point that drifts; pushing it left or right should keep it near the middle."""

    def reset(self):
        self.x, self.v, self.t = 0.3, 0.0, 0
        return [self.x, self.v, 0.0]

    def step(self, action):
        self.v += (0.1 if action == 1 else -0.1) + 0.05 * self.x
        self.x += self.v * 0.5
        self.t += 1
        done = abs(self.x) > 1 or self.t >= args.length
        return [self.x, self.v, self.t / args.length], 1.0 - abs(self.x), done


start = beginning(
    lambda: {"net": Policy().state_dict(), "u": torch.rand(2, args.episodes, args.length)}
)
eps, gamma = torch.finfo(torch.float32).eps, 0.99
for number, kind in enumerate(("reinforce", "actor-critic")):
    policy = Policy()
    policy.load_state_dict(start["net"])
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    env, running_reward = Pole(), 5.0
    for episode in range(args.episodes):
        state, ep_reward, done, t = env.reset(), 0.0, False, 0
        while not done:
            probs, state_value = policy(torch.tensor(state, dtype=torch.float))
            m = Categorical(probs)
            action = torch.tensor(int(start["u"][number, episode, t] < probs[1].item()))
            policy.saved_actions.append((m.log_prob(action), state_value, m.entropy()))
            state, reward, done = env.step(action.item())
            policy.rewards.append(reward)
            ep_reward += reward
            t += 1
        running_reward = 0.05 * ep_reward + 0.95 * running_reward
        R, returns = 0, []
        for r in policy.rewards[::-1]:
            R = r + gamma * R
            returns.insert(0, R)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + eps)
        policy_losses, value_losses = [], []
        for (log_prob, value, entropy), R in zip(policy.saved_actions, returns):
            if kind == "reinforce":
                policy_losses.append(-log_prob * R)
            else:
                advantage = R - value.item()
                policy_losses.append(-log_prob * advantage - 0.01 * entropy)
                value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
        optimizer.zero_grad()
        loss = torch.stack(policy_losses).sum()
        if value_losses:
            loss = loss + torch.stack(value_losses).sum()
        loss.backward()
        optimizer.step()
        del policy.rewards[:]
        del policy.saved_actions[:]
        print("loss %s %d: %.6f reward %.5f" % (kind, episode, loss.item(), running_reward))
