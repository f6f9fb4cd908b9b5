"""torch.package: an object, the code of its classes and its files in one archive.

https://pytorch.org/docs/stable/package.html

A package's modules are separate from those of the process: they have their own names, and import each other.
Loading a package runs the code that is in it, with the rights of the program: load only packages that you trust.

>>> import io
>>> from tensorgrad.package import PackageExporter, PackageImporter
>>> file = io.BytesIO()
>>> with PackageExporter(file) as exporter:
...     exporter.save_source_string("model", "import math\\n\\ndef area(r):\\n    return math.pi * r * r\\n")
...     exporter.save_text("notes", "about.txt", "a circle")
>>> _ = file.seek(0)
>>> importer = PackageImporter(file)
>>> round(importer.import_module("model").area(2), 2), importer.load_text("notes", "about.txt")
(12.57, 'a circle')
"""
from .analyze.is_from_package import is_from_package
from .file_structure_representation import Directory
from .glob_group import GlobGroup
from .importer import Importer, ObjMismatchError, ObjNotFoundError, OrderedImporter, sys_importer
from .package_exporter import EmptyMatchError, PackageExporter, PackagingError
from .package_importer import PackageImporter

__all__ = ["Directory", "EmptyMatchError", "GlobGroup", "Importer", "ObjMismatchError", "ObjNotFoundError",
           "OrderedImporter", "PackageExporter", "PackageImporter", "PackagingError", "is_from_package", "sys_importer"]
