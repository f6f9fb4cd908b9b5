"""PyTorch's names for conversions of pictures and videos."""
from ._images import grid as make_grid
from ._images import grid_of_videos as _prepare_video
from ._images import rows_columns_channels as convert_to_HWC

__all__ = ["_prepare_video", "convert_to_HWC", "make_grid"]
