"""The training loop."""

import tensorgrad as torch
from examples.toolkit.progress import ProgressBar


class Trainer:
    """A classifier with its loss and optimizer; a schedule, if given, steps after every batch."""

    def __init__(self, model, loss, optimizer, schedule=None, device="cpu"):
        self.model = model.to(device)
        self.loss, self.optimizer, self.schedule, self.device = loss, optimizer, schedule, device

    def train(self, loader, title):
        """Train an epoch, and return the loss of every step."""
        self.model.train()
        losses, right, seen = [], 0, 0
        bar = ProgressBar(loader, prefix=title)
        for inputs, labels in bar:
            inputs, labels = inputs.to(self.device), labels.to(self.device)
            logits = self.model(inputs)
            loss = self.loss(logits, labels)

            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if self.schedule:
                self.schedule.step()

            losses.append(loss.item())
            right += (logits.argmax(1) == labels).sum().item()
            seen += len(labels)
            bar.note(loss=losses[-1], accuracy=right / seen)
        return losses

    @torch.no_grad()
    def evaluate(self, loader, evaluator):
        """Pass the model's outputs for all batches of `loader` to `evaluator`."""
        self.model.eval()
        for inputs, labels in loader:
            evaluator.update(self.model(inputs.to(self.device)), labels.to(self.device))
        return evaluator
