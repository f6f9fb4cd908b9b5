"""An image of the content of one and the style of another, by the features of a random network."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

torch.manual_seed(10)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_default_device(device)


class ContentLoss(nn.Module):
    def __init__(self, target):
        super(ContentLoss, self).__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    return torch.mm(features, features.t()).div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super(StyleLoss, self).__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super(Normalization, self).__init__()
        self.mean = mean.clone().detach().view(-1, 1, 1)
        self.std = std.clone().detach().view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


cnn = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(8, 12, 3, padding=1), nn.ReLU(inplace=True)).eval()
content_img, style_img = torch.rand(1, 3, 12, 12), torch.rand(1, 3, 12, 12)
model = nn.Sequential(Normalization(torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])))
content_losses, style_losses, i = [], [], 0
for layer in copy.deepcopy(cnn).children():
    if isinstance(layer, nn.Conv2d):
        i += 1
        name = "conv_{}".format(i)
    elif isinstance(layer, nn.ReLU):
        name, layer = "relu_{}".format(i), nn.ReLU(inplace=False)
    else:
        name = "pool_{}".format(i)
    model.add_module(name, layer)
    if name == "conv_2":
        content_losses.append(ContentLoss(model(content_img)))
        model.add_module("content_loss_{}".format(i), content_losses[-1])
    if name.startswith("conv"):
        style_losses.append(StyleLoss(model(style_img).detach()))
        model.add_module("style_loss_{}".format(i), style_losses[-1])
input_img = content_img.clone()
input_img.requires_grad_(True)
model.eval()
model.requires_grad_(False)
optimizer = optim.LBFGS([input_img], lr=0.5)
run = [0]
while run[0] < 20:
    def closure():
        with torch.no_grad():
            input_img.clamp_(0, 1)
        optimizer.zero_grad()
        model(input_img)
        style_score = sum(sl.loss for sl in style_losses) * 1e4
        content_score = sum(cl.loss for cl in content_losses)
        loss = style_score + content_score
        loss.backward()
        run[0] += 1
        print("Style Loss : {:4f} Content Loss: {:4f}".format(style_score.item(), content_score.item()))
        return style_score + content_score
    optimizer.step(closure)
with torch.no_grad():
    input_img.clamp_(0, 1)
print([name for name, _ in model.named_children()])
