"""SummaryWriter: write logs for TensorBoard. https://pytorch.org/docs/stable/tensorboard.html"""
from __future__ import annotations

import os
import time
from typing import Any

from ...messages.unsupported import unsupported
from . import summary
from ._files import EventFileWriter
from ._graph import graph
from ._images import drawn
from ._wire import Event, Message, ProjectorConfig, SessionLog, TaggedRunMetadata
from .summary import make_np

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Writes events and summaries to a file. https://pytorch.org/docs → torch.utils.tensorboard.writer.FileWriter"""

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "") -> None:
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The directory of the file."""
        return self.event_writer.get_logdir()

    def add_event(self, event: Message, step: Any = None, walltime: float | None = None) -> None:
        """Write an event, with the time (now) and the step."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Message, global_step: Any = None, walltime: float | None = None) -> None:
        """Write a summary as an event."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile: tuple[Message, Message], walltime: float | None = None) -> None:
        """Write a graph and the metadata of its run."""
        graph, profile = graph_profile
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)
        self.add_event(Event(tagged_run_metadata=TaggedRunMetadata(tag="step1",
                                                                   run_metadata=profile.SerializeToString())), None,
                       walltime)

    def add_onnx_graph(self, graph: Message, walltime: float | None = None) -> None:
        """Write a graph alone."""
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Wait until all events are written."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write waiting events, and close the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """After `close`, write to a new file in the same directory."""
        self.event_writer.reopen()


class SummaryWriter:
    """Writes numbers, pictures, texts and more to files that TensorBoard reads.

    https://pytorch.org/docs → torch.utils.tensorboard.writer.SummaryWriter

    The files are in `log_dir`, or in `runs/DATE_TIME_HOST` + `comment`. For a resumed run, TensorBoard drops the
    earlier events from step `purge_step` on. Up to `max_queue` events wait to be written, for `flush_secs` seconds at
    most.

    >>> import tempfile
    >>> from tensorgrad.utils.tensorboard import SummaryWriter
    >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
    ...     for step in range(3):
    ...         writer.add_scalar("loss", 1 / (step + 1), step)
    """

    def __init__(self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
                 flush_secs: float = 120,
                 filename_suffix: str = "") -> None:
        if not log_dir:
            import socket
            log_dir = os.path.join("runs", time.strftime("%b%d_%H-%M-%S_") + socket.gethostname() + comment)
        self.log_dir, self.purge_step, self.max_queue, self.flush_secs, self.filename_suffix = (log_dir, purge_step,
                                                                                                max_queue, flush_secs,
                                                                                                filename_suffix)
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()
        bins, edge = [], 1e-12
        while edge < 1e20:
            bins.append(edge)
            edge *= 1.1
        self.default_bins = [-b for b in reversed(bins)] + [0] + bins

    def _get_file_writer(self) -> FileWriter:
        """Return the writer of the directory's own file; a new one after `close`."""
        if self.file_writer is None or self.all_writers is None:
            self.file_writer = self._new_writer(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                self.file_writer.add_event(Event(step=self.purge_step, file_version="brain.Event:2"))
                self.file_writer.add_event(Event(step=self.purge_step, session_log=SessionLog(status=1)))
                self.purge_step = None
        return self.file_writer

    def _new_writer(self, log_dir: Any) -> FileWriter:
        return FileWriter(log_dir, self.max_queue, self.flush_secs, self.filename_suffix)

    def get_logdir(self) -> Any:
        """The directory of the files."""
        return self.log_dir

    # ── numbers ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def add_scalar(self, tag: str, scalar_value: Any, global_step: Any = None, walltime: float | None = None,
                   new_style: bool = False,
                   double_precision: bool = False) -> None:
        """Add a number; `new_style` stores it as a tensor, in float64 if `double_precision`."""
        self._get_file_writer().add_summary(summary.scalar(tag, scalar_value, new_style=new_style,
                                                           double_precision=double_precision),
                                            global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: Any = None,
                    walltime: float | None = None) -> None:
        """Add several numbers to one chart: each is written to a separate directory, under the same tag."""
        walltime = time.time() if walltime is None else walltime
        folder = self._get_file_writer().get_logdir() + "/" + main_tag.replace("/", "_") + "_"
        writers = self.all_writers
        assert writers is not None
        for tag, value in tag_scalar_dict.items():
            if folder + tag not in writers:
                writers[folder + tag] = self._new_writer(folder + tag)
            writers[folder + tag].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Add all the values of a tensor."""
        self._get_file_writer().add_summary(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(self, tag: str, values: Any, global_step: Any = None, bins: Any = "tensorflow",
                      walltime: float | None = None,
                      max_bins: int | None = None) -> None:
        """Add a histogram of a tensor's values.

        `bins`: edges, a method of `numpy.histogram`, or "tensorflow" for edges that grow by a tenth from 1e-12 on to
        both sides.
        """
        bins = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        self._get_file_writer().add_summary(summary.histogram(tag, values, bins, max_bins=max_bins), global_step,
                                            walltime)

    def add_histogram_raw(self, tag: str, min: float, max: float, num: float, sum: float, sum_squares: float,
                          bucket_limits: Any, bucket_counts: Any,
                          global_step: Any = None, walltime: float | None = None) -> None:
        """Add a histogram of given counts: the upper edge of each bin, and the number of values between it and the
        edge before."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        self._get_file_writer().add_summary(summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits,
                                                                  bucket_counts),
                                            global_step, walltime)

    def add_pr_curve(self, tag: str, labels: Any, predictions: Any, global_step: Any = None, num_thresholds: int = 127,
                     weights: Any = None,
                     walltime: float | None = None) -> None:
        """Add a precision-recall curve of labels 0 and 1 and the predicted probabilities of 1."""
        self._get_file_writer().add_summary(summary.pr_curve(tag, make_np(labels), make_np(predictions), num_thresholds,
                                                             weights), global_step, walltime)

    def add_pr_curve_raw(self, tag: str, true_positive_counts: Any, false_positive_counts: Any,
                         true_negative_counts: Any, false_negative_counts: Any, precision: Any, recall: Any,
                         global_step: Any = None, num_thresholds: int = 127,
                         weights: Any = None,
                         walltime: float | None = None) -> None:
        """Add a precision-recall curve of given counts: a number for each threshold."""
        self._get_file_writer().add_summary(
            summary.pr_curve_raw(tag, true_positive_counts, false_positive_counts, true_negative_counts,
                                 false_negative_counts, precision, recall,
                                 num_thresholds, weights), global_step, walltime)

    # ── pictures, sounds and texts ────────────────────────────────────────────────────────────────────────────────────

    def add_image(self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
                  dataformats: str = "CHW") -> None:
        """Add an image: bytes, or numbers from 0 to 1; `dataformats` names the axes."""
        self._get_file_writer().add_summary(summary.image(tag, img_tensor, dataformats=dataformats), global_step,
                                            walltime)

    def add_images(self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
                   dataformats: str = "NCHW") -> None:
        """Add images, eight in a row."""
        self._get_file_writer().add_summary(summary.image(tag, img_tensor, dataformats=dataformats), global_step,
                                            walltime)

    def add_image_with_boxes(self, tag: str, img_tensor: Any, box_tensor: Any, global_step: Any = None,
                             walltime: float | None = None, rescale: float = 1, dataformats: str = "CHW",
                             labels: Any = None) -> None:
        """Add an image with red frames: rows (left, top, right, bottom), and a label for each."""
        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != box_tensor.shape[0]:
            labels = None
        self._get_file_writer().add_summary(summary.image_boxes(tag, img_tensor, box_tensor, rescale=rescale,
                                                                dataformats=dataformats, labels=labels),
                                            global_step, walltime)

    def add_figure(self, tag: str, figure: Any, global_step: Any = None, close: bool = True,
                   walltime: float | None = None) -> None:
        """Add a Matplotlib figure, or a list of figures, which are closed afterwards."""
        self.add_image(tag, drawn(figure, close), global_step, walltime,
                       dataformats="NCHW" if isinstance(figure, list) else "CHW")

    def add_video(self, tag: str, vid_tensor: Any, global_step: Any = None, fps: float = 4,
                  walltime: float | None = None) -> None:
        """Add videos: (N, time, channels, height, width)."""
        self._get_file_writer().add_summary(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(self, tag: str, snd_tensor: Any, global_step: Any = None, sample_rate: int = 44100,
                  walltime: float | None = None) -> None:
        """Add a sound: (length) or (1, length), from -1 to 1."""
        self._get_file_writer().add_summary(summary.audio(tag, snd_tensor, sample_rate=sample_rate), global_step,
                                            walltime)

    def add_text(self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None) -> None:
        """Add a text in Markdown."""
        self._get_file_writer().add_summary(summary.text(tag, text_string), global_step, walltime)

    def add_mesh(self, tag: str, vertices: Any, colors: Any = None, faces: Any = None, config_dict: Any = None,
                 global_step: Any = None,
                 walltime: float | None = None) -> None:
        """Add a mesh: points (batch, points, 3), their colours, and triangles (batch, triangles, 3) of indices of
        points."""
        self._get_file_writer().add_summary(summary.mesh(tag, vertices, colors, faces, config_dict), global_step,
                                            walltime)

    # ── models and experiments ────────────────────────────────────────────────────────────────────────────────────────

    def add_graph(self, model: Any, input_to_model: Any = None, verbose: bool = False,
                  use_strict_trace: bool = True) -> None:
        """Add the graph of a model, which runs once to record its calls."""
        self._get_file_writer().add_graph(graph(model, input_to_model, verbose, use_strict_trace))

    add_onnx_graph = unsupported("add_onnx_graph", "utils.tensorboard.SummaryWriter",
                                 "ONNX files are not read")["add_onnx_graph"]

    def add_hparams(self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: Any = None,
                    run_name: str | None = None,
                    global_step: Any = None) -> None:
        """Add the hyperparameters and metrics of a run, for comparison with other runs.

        They are written to a separate directory.
        """
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        summaries = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        with SummaryWriter(os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))) as writer:
            for part in summaries:
                writer._get_file_writer().add_summary(part, global_step)
            for tag, value in metric_dict.items():
                writer.add_scalar(tag, value, global_step)

    def add_custom_scalars(self, layout: dict[str, Any]) -> None:
        """Add a layout of charts that combine scalars: {category: {chart: ["Multiline", tags]}}, or ["Margin",
        [value, lower, upper]]."""
        self._get_file_writer().add_summary(summary.custom_scalars(layout))

    def add_custom_scalars_multilinechart(self, tags: Any, category: str = "default", title: str = "untitled") -> None:
        """Show several scalars in one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags: Any, category: str = "default", title: str = "untitled") -> None:
        """Show a scalar between two others in one chart."""
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    @staticmethod
    def _encode(rawstr: str) -> str:
        return rawstr.replace("%", "%25").replace("/", "%2f").replace("\\", "%5c")

    def add_embedding(self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: Any = None,
                      tag: str = "default",
                      metadata_header: Any = None) -> None:
        """Add vectors (N, D) for the projector, with a label and an image (N, C, H, W) for each."""
        from . import _embedding
        mat, global_step = make_np(mat), 0 if global_step is None else global_step
        root = self._get_file_writer().get_logdir()
        below = f"{str(global_step).zfill(5)}/{self._encode(tag)}"
        folder = os.path.join(root, below)
        if os.path.isdir(folder):
            print("warning: Embedding dir exists, did you set global_step for add_embedding()?")
        elif os.path.exists(folder):
            raise NotADirectoryError(f"Path: `{folder}` exists, but is a file. Cannot proceed.")
        os.makedirs(folder, exist_ok=True)
        if metadata is not None:
            if mat.shape[0] != len(metadata):
                raise AssertionError("#labels should equal with #data points")
            _embedding.write_metadata(metadata, folder, metadata_header)
        if label_img is not None:
            if mat.shape[0] != label_img.shape[0]:
                raise AssertionError("#images should equal with #data points")
            _embedding.write_sprite(label_img, folder)
        if mat.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        _embedding.write_vectors(mat, folder)
        if not hasattr(self, "_projector_config"):
            self._projector_config = ProjectorConfig(embeddings=[])
        self._projector_config.embeddings.append(_embedding.embedding(metadata, label_img, below, global_step, tag))
        with open(os.path.join(root, "projector_config.pbtxt"), "wb") as file:
            file.write(str(self._projector_config).encode())

    # ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def flush(self) -> None:
        """Wait until all events are written."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write waiting events, and close the files; later additions go to new files."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
