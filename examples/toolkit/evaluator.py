"""How many of each class were recognised."""

import tensorgrad as torch


class Evaluator:
    """Counts right answers, class by class."""

    def __init__(self, classes):
        self.classes = classes
        self.right = [0] * len(classes)
        self.seen = [0] * len(classes)

    def update(self, logits, labels):
        """Add a batch: logits (N, classes), labels (N,). Returns how many of it were right."""
        hits = labels[logits.argmax(1) == labels]
        for counts, found in ((self.right, hits), (self.seen, labels)):
            for index, count in enumerate(torch.bincount(found, minlength=len(counts)).tolist()):
                counts[index] += count
        return len(hits)

    @property
    def accuracy(self):
        """The share of all samples that were right."""
        return sum(self.right) / max(sum(self.seen), 1)

    def table(self):
        """A line a class, then the total."""
        rows = [*zip(self.classes, self.right, self.seen, strict=True), ("Total", sum(self.right), sum(self.seen))]
        lines = [f"{'class':>6}  {'right':>6}  {'of':>6}  accuracy"]
        for name, right, seen in rows:
            share = f"{100 * right / seen:6.2f} %" if seen else "       –"
            lines.append(f"{name:>6}  {right:6}  {seen:6}  {share}")
        return "\n".join(lines)
