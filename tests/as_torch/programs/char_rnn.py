"""Names by their letters: a recurrent network made of Linear layers, stepped by hand."""
import random
import string

import torch
import torch.nn as nn

random.seed(0)
torch.manual_seed(0)
all_letters = string.ascii_lowercase + " .,;'"
n_letters = len(all_letters)
names = {"Greek": ["alexopoulos", "demas", "kanelos", "leontarakis"], "Italian": ["abategiovanni", "bellini", "di lorenzo", "rossi"],
         "Dutch": ["van den berg", "haanraads", "kikkert", "sneijders"]}
all_categories = list(names)


def lineToTensor(line):
    tensor = torch.zeros(len(line), 1, n_letters)
    for li, letter in enumerate(line):
        tensor[li][0][all_letters.find(letter)] = 1
    return tensor


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super(RNN, self).__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, input, hidden):
        combined = torch.cat((input, hidden), 1)
        hidden = torch.tanh(self.i2h(combined))
        return self.softmax(self.h2o(hidden)), hidden

    def initHidden(self):
        return torch.zeros(1, self.hidden_size)


rnn = RNN(n_letters, 24, len(all_categories))
criterion = nn.NLLLoss()
learning_rate = 0.05


def train(category_tensor, line_tensor):
    hidden = rnn.initHidden()
    rnn.zero_grad()
    for i in range(line_tensor.size()[0]):
        output, hidden = rnn(line_tensor[i], hidden)
    loss = criterion(output, category_tensor)
    loss.backward()
    for p in rnn.parameters():
        p.data.add_(p.grad.data, alpha=-learning_rate)
    return output, loss.item()


for step in range(50):
    category = random.choice(all_categories)
    line = random.choice(names[category])
    output, loss = train(torch.tensor([all_categories.index(category)], dtype=torch.long), lineToTensor(line))
    top_n, top_i = output.topk(1)
    print(step, loss, line, all_categories[top_i[0].item()])
