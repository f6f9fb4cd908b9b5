"""The first backward of a program that ends in a NaN or an infinity: what `python -m tensorgrad.viz --nan` stops at."""
from __future__ import annotations

from typing import Any

from ..core.mode import mode
from .last_loss import Last
from .naming import placed, tensors_of
from .nan import NanReport, badness


class Found(BaseException):
    """Ends the program: no `except Exception` of its own holds it up."""


class Hunt(Last):
    """Looks at the loss and at the gradients after each backward, and ends the program by `Found` after the first that
    is not finite.

    The optimizer has not written over the parameters then. `found` says whether there was one.
    """

    found = False

    def shown(self, node: Any, outs: Any) -> None:
        if self.found:
            self.show(node, outs)
        else:
            super().shown(node, outs)

    def backward(self, *args: Any, **keywords: Any) -> None:
        if self.found:                                              # a program that went on all the same
            self.plain(*args, **keywords)
            return
        before = self.backwards
        try:
            super().backward(*args, **keywords)
        except RuntimeError as error:
            # of anomaly mode, which ends the backward where a NaN was made
            if self.backwards == before or not mode.watching.anomaly or "returned nan values" not in str(error):
                raise
            self.found = True
            raise Found from None
        if self.backwards > before and any(map(badness, [*self.outputs, *[t._grad for t, *_ in self.leaves]])):
            self.found = True
            raise Found

    def report(self) -> NanReport:
        """Where the NaN of the last backward came from; its numbers are put back first."""
        self.restore()
        tensors = placed(tensors_of(self.scope, self.module()))
        gradients = (self.gradients if isinstance(self.gradients, (tuple, list))
                     else [self.gradients] * len(self.outputs))
        reports = [NanReport(loss, gradient, tensors) for loss, gradient in zip(self.outputs, gradients)]
        return next((report for report in reports if not report.finite), reports[-1])
