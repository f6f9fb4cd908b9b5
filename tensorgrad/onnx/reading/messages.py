"""The messages of ONNX files, and the numbers of their fields. https://github.com/onnx/onnx/blob/main/onnx/onnx.proto

A line gives a message's fields as `name:type=number`; a star marks a repeated field. Types of lower case are scalars:
`int` and `uint` are varints of 64 bits, `float` and `double` have 4 and 8 bytes. Fields that are not in the table,
such as texts of documentation, are skipped.
"""
from __future__ import annotations

from array import array
from typing import Any

from ...graph.records import Record

TABLE = """
Model         ir_version:int=1 producer_name:str=2 producer_version:str=3 graph:Graph=7 opset_import:Opset*=8
              metadata_props:Entry*=14 functions:Function*=25
Opset         domain:str=1 version:int=2
Entry         key:str=1 value:str=2
Graph         node:Node*=1 name:str=2 initializer:Tensor*=5 input:Value*=11 output:Value*=12 value_info:Value*=13
              sparse_initializer:SparseTensor*=15
Node          input:str*=1 output:str*=2 name:str=3 op_type:str=4 attribute:Attribute*=5 domain:str=7 overload:str=8
Attribute     name:str=1 f:float=2 i:int=3 s:bytes=4 t:Tensor=5 g:Graph=6 floats:float*=7 ints:int*=8 strings:bytes*=9
              tensors:Tensor*=10 graphs:Graph*=11 tp:Type=14 type_protos:Type*=15 type:int=20 ref_attr_name:str=21
              sparse_tensor:SparseTensor=22 sparse_tensors:SparseTensor*=23
Tensor        dims:int*=1 data_type:int=2 float_data:float*=4 int32_data:int*=5 string_data:bytes*=6 int64_data:int*=7
              name:str=8 raw_data:bytes=9 double_data:double*=10 uint64_data:uint*=11 external_data:Entry*=13
              data_location:int=14
SparseTensor  values:Tensor=1 indices:Tensor=2 dims:int*=3
Value         name:str=1 type:Type=2
Type          tensor_type:TensorType=1 sequence_type:ElementType=4 sparse_tensor_type:TensorType=8
              optional_type:ElementType=9
TensorType    elem_type:int=1 shape:Shape=2
ElementType   elem_type:Type=1
Shape         dim:Dimension*=1
Dimension     dim_value:int=1 dim_param:str=2
Function      name:str=1 input:str*=4 output:str*=5 attribute:str*=6 node:Node*=7 opset_import:Opset*=9 domain:str=10
              attribute_proto:Attribute*=11 overload:str=13
"""


class Field(Record):
    """A field of a message: its name, the type of its values, and whether it has many."""

    name: str
    type: str
    repeated: bool

    def empty(self) -> Any:
        """Return the value that the field has until the file gives one."""
        if not self.repeated:
            return ABSENT.get(self.type)
        return array(CODES[self.type]) if self.type in CODES else []


def _parsed(table: str) -> dict[str, dict[int, Field]]:
    """Return {message: {number: field}}."""
    found: dict[str, dict[int, Field]] = {}
    for word in table.split():
        if ":" not in word:
            fields = found[word] = {}
            continue
        name, _, rest = word.partition(":")
        kind, _, number = rest.partition("=")
        fields[int(number)] = Field(name, kind.rstrip("*"), kind.endswith("*"))
    return found


MESSAGES = _parsed(TABLE)
ABSENT: dict[str, Any] = {"int": 0, "uint": 0, "float": 0.0, "double": 0.0, "str": "", "bytes": b""}
CODES = {"int": "q", "uint": "Q", "float": "f", "double": "d"}       # of arrays of numbers


class Message:
    """A message that was read; its fields are its attributes: 0, "" or None where a file has none.

    >>> Message("Opset")
    Opset(domain='', version=0)
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        for field in MESSAGES[kind].values():
            setattr(self, field.name, field.empty())

    def __getattr__(self, name: str) -> Any:        # tells type checkers that the fields are attributes
        raise AttributeError(f"{self.kind} has no field {name!r}")

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in vars(self).items() if key != "kind")
        return f"{self.kind}({shown})"
