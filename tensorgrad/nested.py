"""torch.nested: there are no nested tensors. https://pytorch.org/docs/stable/nested.html"""
from .messages.unsupported import unsupported

_NAMES = "as_nested_tensor masked_select narrow nested_tensor nested_tensor_from_jagged to_padded_tensor"
globals().update(unsupported(_NAMES, "torch.nested",
                             "there are no nested tensors; torch.nn.utils.rnn.pad_sequence pads sequences of different "
                             "lengths"))
__all__ = _NAMES.split()
