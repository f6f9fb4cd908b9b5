"""The processes that modules work together with where a program names no others: whoever starts communication sets them."""

__all__: list[str] = []

default_group = None        # a process group; None while this process works alone
