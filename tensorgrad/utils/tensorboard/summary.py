"""Summaries of values in event files: a function for each kind of value, as in ``torch.utils.tensorboard.summary``."""
from __future__ import annotations

import io
import json
import logging
from typing import Any

import numpy as np

from ... import api as tg
from ._images import boxed, gif, grid_of_videos, pixels, png, rows_columns_channels
from ._wire import (
    Audio,
    Category,
    Chart,
    Dim,
    Experiment,
    HistogramProto,
    HParamInfo,
    HParamsPluginData,
    Image,
    Layout,
    ListValue,
    MarginChartContent,
    MeshPluginData,
    Message,
    MetricInfo,
    MetricName,
    MultilineChartContent,
    Plain,
    PluginData,
    PrCurvePluginData,
    Series,
    SessionEndInfo,
    SessionStartInfo,
    Summary,
    SummaryMetadata,
    TensorProto,
    TensorShapeProto,
    Value,
)

__all__ = ["audio", "compute_curve", "custom_scalars", "draw_boxes", "half_to_int", "histogram", "histogram_raw",
           "hparams", "image", "image_boxes", "int_to_half", "make_histogram", "make_image", "make_np", "mesh",
           "pr_curve", "pr_curve_raw", "scalar", "tensor_proto", "text", "video"]

logger = logging.getLogger(__name__)
FLOAT, DOUBLE, STRING = 1, 2, 7                  # TensorFlow's enumeration of dtypes


def make_np(x: Any) -> np.ndarray:
    """The value as a NumPy array."""
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, tg.Tensor):
        if x.device.type == "meta":
            return np.random.randn(1)            # a meta tensor gives a random number, as in PyTorch
        x = x.detach().cpu()
        return (x.to(tg.float16) if x.dtype is tg.bfloat16 else x).resolve_conj().resolve_neg().numpy()
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")


def _summary(tag: str, plugin: str | None = None, content: bytes = b"", **what: Any) -> Message:
    metadata = None if plugin is None else SummaryMetadata(plugin_data=PluginData(plugin_name=plugin, content=content))
    return Summary(value=[Value(tag=tag, metadata=metadata, **what)])


def _shape(sizes: Any) -> Message:
    return TensorShapeProto(dim=[Dim(size=int(size)) for size in sizes])


# ── numbers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def scalar(name: str, tensor: Any, collections: Any = None, new_style: bool = False,
           double_precision: bool = False) -> Message:
    """Summarize a number. AssertionError unless it has a single element."""
    value = make_np(tensor).squeeze()
    if value.ndim != 0:
        raise AssertionError("Tensor should contain one element (0 dimensions).             "
                             f"Was given size: {value.size} and {value.ndim} dimensions.")
    number = float(value)
    if not new_style:
        return _summary(name, simple_value=number)
    return _summary(name, "scalars", tensor=TensorProto(dtype=DOUBLE, double_val=[number]) if double_precision
                    else TensorProto(dtype=FLOAT, float_val=[number]))


def half_to_int(f: float) -> int:
    """Return the bits of the float32 that equals a half precision number."""
    return int(np.float32(f).view(np.int32))


def int_to_half(i: int) -> float:
    """Return the number with the bits that `half_to_int` returned."""
    return float(np.int32(i).view(np.float32))


# dtype → TensorFlow's number for it, the field of its values, and NumPy's type of those
_KINDS = {"float16": (19, "half_val", "f4"), "bfloat16": (14, "half_val", "f4"), "float32": (FLOAT, "float_val", "f4"),
          "float64": (DOUBLE, "double_val", "f8"), "int8": (6, "int_val", "i4"), "int16": (5, "int_val", "i4"),
          "int32": (3, "int_val", "i4"), "int64": (9, "int64_val", "i8"), "uint8": (4, "uint32_val", "i8"),
          "bool": (10, "bool_val", "i4"),
          "complex64": (8, "scomplex_val", "c8"), "complex128": (18, "dcomplex_val", "c16")}


def tensor_proto(tag: str, tensor: Any) -> Message:
    """Summarize all the values of a tensor."""
    if tensor.numel() * tensor.itemsize >= 1 << 31:
        raise ValueError("tensor is bigger than protocol buffer's hard limit of 2GB in size")
    known = _KINDS.get(str(tensor.dtype).rpartition(".")[2])
    if known is None:
        raise ValueError(f"{tag} has unsupported tensor dtype {tensor.dtype}")
    dtype, field, kind = known
    values = tensor.detach().cpu()
    values = (values.to(tg.float32) if field == "half_val"
              else values.resolve_conj().resolve_neg()).numpy().ravel().astype(kind)
    values = (values.view("i4") if field == "half_val" else values.view(f"f{values.itemsize // 2}")
              if values.dtype.kind == "c" else values)
    return _summary(tag, "tensor", tensor=TensorProto(dtype=dtype, tensor_shape=_shape(tensor.shape),
                                                      **{field: values.tolist()}))


def histogram_raw(name: str, min: float, max: float, num: float, sum: float, sum_squares: float, bucket_limits: Any,
                  bucket_counts: Any) -> Message:
    """Summarize a histogram of given counts."""
    return _summary(name, histo=HistogramProto(min=min, max=max, num=num, sum=sum, sum_squares=sum_squares,
                                               bucket_limit=_array(bucket_limits),
                                               bucket=_array(bucket_counts)))


def _array(values: Any) -> np.ndarray:
    return make_np(values) if isinstance(values, tg.Tensor) else np.asarray(values)


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Message:
    """Count the values in each bin."""
    return _summary(name, histo=make_histogram(make_np(values).astype(float), bins, max_bins))


def make_histogram(values: np.ndarray, bins: Any, max_bins: int | None = None) -> Message:
    """Count by NumPy.

    More than `max_bins` bins are merged with their neighbours; empty bins at both ends are dropped, except one at the
    left, whose limit is the start of the first bin with values.
    """
    if values.size == 0:
        raise ValueError("The input has no element.")
    values = values.reshape(-1)
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        together = len(counts) // max_bins
        limits = np.append(limits[:-1:together], limits[-1])
        counts = np.add.reduceat(counts, np.arange(0, len(counts), together))
    full = np.flatnonzero(counts > 0)
    # a single bin is shown even if it is empty
    shown = slice(full[0], full[-1] + 2) if full.size else slice(len(counts), 2)
    limits, counts = limits[shown], np.append(0, counts)[shown]
    if not counts.size:
        raise ValueError("The histogram is empty, please file a bug report.")
    return HistogramProto(min=values.min(), max=values.max(), num=len(values), sum=values.sum(),
                          sum_squares=values.dot(values),
                          bucket_limit=limits, bucket=counts)


def _curve(tag: str, data: np.ndarray, num_thresholds: int) -> Message:
    content = PrCurvePluginData(version=0, num_thresholds=min(num_thresholds, 127)).SerializeToString()
    return _summary(tag, "pr_curves", content,
                    tensor=TensorProto(dtype=FLOAT, float_val=data.reshape(-1), tensor_shape=_shape(data.shape[:2])))


def pr_curve_raw(tag: str, tp: Any, fp: Any, tn: Any, fn: Any, precision: Any, recall: Any, num_thresholds: int = 127,
                 weights: Any = None) -> Message:
    """Summarize a precision-recall curve of given counts."""
    return _curve(tag, np.stack([_array(part) for part in (tp, fp, tn, fn, precision, recall)]), num_thresholds)


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Message:
    """Compute and summarize a precision-recall curve, for thresholds from 0 to 1."""
    return _curve(tag, compute_curve(labels, predictions, min(num_thresholds, 127), weights), num_thresholds)


def compute_curve(labels: np.ndarray, predictions: np.ndarray, num_thresholds: int, weights: Any = None) -> np.ndarray:
    """True and false positives, true and false negatives, precision and recall: a row each, a column for each
    threshold.
    """
    weight = np.broadcast_to(1.0 if weights is None else _array(weights), labels.shape).ravel()
    place = np.floor(predictions * (num_thresholds - 1)).astype(np.int32).ravel()
    counted = (place >= 0) & (place < num_thresholds)
    truth = labels.astype(np.float64).ravel()
    tp, fp = (np.bincount(place[counted], (part * weight)[counted], minlength=num_thresholds)[::-1].cumsum()[::-1]
              for part in (truth, 1 - truth))
    tn, fn = fp[0] - fp, tp[0] - tp
    return np.stack((tp, fp, tn, fn, tp / np.maximum(1e-7, tp + fp), tp / np.maximum(1e-7, tp + fn)))


# ── texts, sounds and pictures ────────────────────────────────────────────────────────────────────────────────────────


def text(tag: str, text: str) -> Message:
    """Summarize a text, which TensorBoard reads as Markdown."""
    return _summary(tag + "/text_summary", "text",
                    tensor=TensorProto(dtype=STRING, string_val=[text.encode()], tensor_shape=_shape([1])))


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Message:
    """Summarize a sound: amplitudes from -1 to 1, in a single channel."""
    import wave
    samples = make_np(tensor).squeeze()
    if abs(samples).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        samples = samples.clip(-1, 1)
    if samples.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    samples = (samples * np.iinfo(np.int16).max).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 2, sample_rate, len(samples), "NONE", "not compressed"))
        sound.writeframes(samples.tobytes())
    return _summary(tag, audio=Audio(sample_rate=sample_rate, num_channels=1, length_frames=len(samples),
                                     encoded_audio_string=file.getvalue(),
                                     content_type="audio/wav"))


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Message:
    """Summarize an image, or several in a grid: bytes, or numbers from 0 to 1."""
    return _summary(tag, image=make_image(pixels(rows_columns_channels(make_np(tensor), dataformats)), rescale))


def image_boxes(tag: str, tensor_image: Any, tensor_boxes: Any, rescale: float = 1, dataformats: str = "CHW",
                labels: Any = None) -> Message:
    """Summarize an image with boxes, drawn as red frames."""
    return _summary(tag, image=make_image(pixels(rows_columns_channels(make_np(tensor_image), dataformats)), rescale,
                                          make_np(tensor_boxes), labels))


def make_image(tensor: np.ndarray, rescale: float = 1, rois: Any = None, labels: Any = None) -> Message:
    """Encode an image from its pixels, (height, width, channels)."""
    height, width, channels = tensor.shape
    return Image(height=height, width=width, colorspace=channels,
                 encoded_image_string=png(tensor, rescale, rois, labels))


draw_boxes = boxed


def _calc_scale_factor(tensor: Any) -> int:
    """Return the factor from the values of a picture to 0 … 255."""
    return 1 if make_np(tensor).dtype == np.uint8 else 255


def video(tag: str, tensor: Any, fps: float = 4) -> Message:
    """Summarize a video: (batch, time, channels, height, width)."""
    frames = pixels(grid_of_videos(make_np(tensor)))
    _, height, width, channels = frames.shape
    return _summary(tag, image=Image(height=height, width=width, colorspace=channels,
                                     encoded_image_string=gif(frames, fps)))


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config_dict: Any, display_name: Any = None,
         description: Any = None) -> Message:
    """Summarize a mesh: points, their colours, and triangles between them: (batch, points, 3) each."""
    config = "{}" if config_dict is None else json.dumps(config_dict, sort_keys=True)
    parts = [(kind, name, tg.as_tensor(part)) for kind, name, part in ((1, "VERTEX", vertices), (2, "FACE", faces),
                                                                       (3, "COLOR", colors))
             if part is not None]
    values = []
    for kind, name, part in parts:
        if part.dim() != 3:
            raise ValueError(f"Tensor shape should be of shape BxNx3, but got {part.shape}.")
        content = MeshPluginData(version=0, name=tag, content_type=kind, json_config=config, shape=part.shape,
                                 components=sum(1 << kind for kind, _, _ in parts)).SerializeToString()
        metadata = SummaryMetadata(display_name=display_name, summary_description=description,
                                   plugin_data=PluginData(plugin_name="mesh", content=content))
        tensor = TensorProto(dtype=FLOAT, float_val=make_np(part).ravel(), tensor_shape=_shape(part.shape))
        values.append(Value(tag=f"{tag}_{name}", tensor=tensor, metadata=metadata))
    return Summary(value=values)


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def custom_scalars(layout: dict[str, Any]) -> Message:
    """Summarize a layout of charts, which combine scalars: {category: {chart: ["Multiline" or "Margin", tags]}}."""
    def chart(title: str, kind: str, tags: Any) -> Message:
        if kind != "Margin":
            return Chart(title=title, multiline=MultilineChartContent(tag=tags))
        if len(tags) != 3:
            raise AssertionError("len(tags) != 3")
        value, lower, upper = tags
        return Chart(title=title, margin=MarginChartContent(series=[Series(value=value, lower=lower, upper=upper)]))
    content = Layout(
        category=[Category(title=category,
                           chart=[chart(title, described[0], described[1]) for title, described in charts.items()])
                  for category, charts in layout.items()])
    return _summary("custom_scalars__config__", "custom_scalars",
                    tensor=TensorProto(dtype=STRING, string_val=[content.SerializeToString()],
                                       tensor_shape=TensorShapeProto()))


def hparams(hparam_dict: Any = None, metric_dict: Any = None, hparam_domain_discrete: Any = None) -> tuple[Message,
                                                                                                           Message,
                                                                                                           Message]:
    """Return three summaries of an experiment: its hyperparameters and metrics, the values at its start, and its
    end.
    """
    domains = hparam_domain_discrete or {}
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict),
                        ("hparam_domain_discrete", domains)):
        if not isinstance(given, dict):
            text = f"parameter: {name} should be a dictionary, nothing logged."
            if given is not domains:
                logger.warning(text)
            raise TypeError(text)
    for name, domain in domains.items():
        if (name not in hparam_dict or not isinstance(domain, list)
                or not all(isinstance(d, type(hparam_dict[name])) for d in domain)):
            raise TypeError(f"parameter: hparam_domain_discrete[{name}] should be a list of same type as "
                            f"hparam_dict[{name}].")
    infos, values = [], {}
    for name, value in hparam_dict.items():
        if value is None:
            continue
        if isinstance(value, str):
            kind, field = 1, "string_value"
        elif isinstance(value, (int, float)):
            kind, field = 3, "number_value"
        elif isinstance(value, tg.Tensor):
            kind, field, value = 3, "number_value", make_np(value)[0]
        else:
            raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
        values[name] = Plain(**{field: value})
        domain = ListValue(values=[Plain(**{field: d}) for d in domains[name]]) if name in domains else None
        infos.append(HParamInfo(name=name, type=kind, domain_discrete=domain))
    experiment = Experiment(hparam_infos=infos,
                            metric_infos=[MetricInfo(name=MetricName(tag=tag)) for tag in metric_dict])
    return (_summary("_hparams_/experiment", "hparams", HParamsPluginData(experiment=experiment).SerializeToString()),
            _summary("_hparams_/session_start_info", "hparams",
                     HParamsPluginData(session_start_info=SessionStartInfo(hparams=values)).SerializeToString()),
            _summary("_hparams_/session_end_info", "hparams",
                     HParamsPluginData(session_end_info=SessionEndInfo(status=1)).SerializeToString()))
