"""Images as arrays, and as PNG and GIF files by Pillow."""
from __future__ import annotations

import io
from typing import Any

import numpy as np

from ...messages.extras import install


def _pillow() -> Any:
    try:
        import PIL.Image
        import PIL.ImageDraw
        import PIL.ImageFont
    except ImportError as error:
        raise ImportError(f"pictures for TensorBoard are drawn by Pillow: {install('tensorboard')}") from error
    return PIL


def pixels(values: np.ndarray) -> np.ndarray:
    """Convert values to bytes: numbers from 0 to 1 are scaled, bytes pass through."""
    return (values.astype(np.float32) * (1 if values.dtype == np.uint8 else 255)).clip(0, 255).astype(np.uint8)


def grid(images: np.ndarray, columns: int = 8) -> np.ndarray:
    """Arrange images in a grid: (N, channels, height, width) to (3, rows · height, columns · width).

    >>> grid(np.arange(3).reshape(3, 1, 1, 1), columns=2)[0]
    array([[0, 1],
           [2, 0]])
    """
    if not isinstance(images, np.ndarray):
        raise AssertionError("plugin error, should pass numpy array here")
    if images.shape[1] == 1:
        images = images.repeat(3, axis=1)
    if images.ndim != 4 or images.shape[1] != 3:
        raise AssertionError("Input should be a 4D numpy array with 3 channels")
    count, channels, height, width = images.shape
    columns = min(count, columns)
    rows = -(-count // columns)
    places = np.zeros((rows * columns, channels, height, width), images.dtype)
    places[:count] = images
    return places.reshape(rows, columns, channels, height, width).transpose(2, 0, 3, 1, 4).reshape(channels,
                                                                                                   rows * height,
                                                                                                   columns * width)


def rows_columns_channels(values: np.ndarray, order: str) -> np.ndarray:
    """Convert values with axes such as "CHW", "HW" or "NCHW" to (height, width, 3 or more channels)."""
    if len(set(order)) != len(order):
        raise AssertionError("You can not use the same dimension shorthand twice.             "
                             f"input_format: {order}")
    if values.ndim != len(order):
        raise AssertionError("size of input tensor and input format are different.         "
                             f"tensor shape: {values.shape}, input_format: {order}")
    wanted = {4: "NCHW", 3: "HWC", 2: "HW"}[len(order)]
    values = values.transpose([order.upper().find(axis) for axis in wanted])
    if wanted == "NCHW":
        return grid(values).transpose(1, 2, 0)
    values = values if values.ndim == 3 else values[:, :, None]
    return values.repeat(3, axis=2) if values.shape[2] == 1 else values


def grid_of_videos(videos: np.ndarray) -> np.ndarray:
    """Arrange videos in a grid, padded to a power of two: (N, time, channels, height, width) to (time, height,
    width, channels)."""
    count, time, channels, height, width = videos.shape
    if videos.dtype == np.uint8:
        videos = np.float32(videos) / 255.0
    total = count if count and not count & count - 1 else 1 << count.bit_length()
    places = np.zeros((total, *videos.shape[1:]), videos.dtype if total == count else float)
    places[:count] = videos
    rows = 1 << (count.bit_length() - 1) // 2
    columns = total // rows
    return places.reshape(rows, columns, time, channels, height, width).transpose(2, 0, 4, 1, 5, 3).reshape(
        time, rows * height, columns * width, channels)


def boxed(picture: Any, boxes: np.ndarray, labels: Any = None) -> Any:
    """Draw red frames into a Pillow image, one for each row (left, top, right, bottom), with a label at the lower
    left.
    """
    PIL = _pillow()
    pen, font = PIL.ImageDraw.Draw(picture), PIL.ImageFont.load_default()
    for i, (left, top, right, bottom) in enumerate(boxes[:, :4]):
        pen.line([(left, top), (left, bottom), (right, bottom), (right, top), (left, top)], width=2, fill="Red")
        if labels is not None and labels[i]:
            x0, y0, x1, y1 = font.getbbox(labels[i])
            width, height = x1 - x0, y1 - y0
            margin = np.ceil(height / 20)
            pen.rectangle([(left, bottom - height - 2 * margin), (left + width, bottom)], fill="Red")
            pen.text((left + margin, bottom - height - margin), labels[i], fill="black", font=font)
    return picture


def png(values: np.ndarray, rescale: float = 1, boxes: Any = None, labels: Any = None) -> bytes:
    """Encode pixels (height, width, channels) as a PNG file."""
    PIL = _pillow()
    picture = PIL.Image.fromarray(values)
    if boxes is not None:
        picture = boxed(picture, boxes, labels)
    if rescale != 1:
        picture = picture.resize((int(values.shape[1] * rescale), int(values.shape[0] * rescale)),
                                 PIL.Image.Resampling.LANCZOS)
    file = io.BytesIO()
    picture.save(file, format="PNG")
    return file.getvalue()


def gif(frames: np.ndarray, fps: float) -> bytes:
    """Encode frames (time, height, width, channels) as a GIF file that loops."""
    PIL = _pillow()
    first, *others = [PIL.Image.fromarray(frame[:, :, 0] if frame.shape[2] == 1 else frame) for frame in frames]
    file = io.BytesIO()
    first.save(file, format="GIF", save_all=True, append_images=others, duration=1000 / fps, loop=0)
    return file.getvalue()


def drawn(figures: Any, close: bool = True) -> np.ndarray:
    """Render a Matplotlib figure as (3, height, width), or a list of figures as (N, 3, height, width)."""
    try:
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError as error:
        raise ImportError(f"figures are drawn by Matplotlib: {install('plot')}") from error
    if isinstance(figures, list):
        return np.stack([drawn(figure, close) for figure in figures])
    canvas = FigureCanvasAgg(figures)
    canvas.draw()
    values = np.array(canvas.buffer_rgba(), dtype=np.uint8)[:, :, :3]
    if close:
        pyplot.close(figures)
    return np.moveaxis(values, 2, 0)
