"""Other interpretations of the op table: shapes without values, batches with hidden axes, tangents."""
