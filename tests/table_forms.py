"""One table in every form in which it may come, by the name of the form."""

import duckdb
import polars as pl
import pyarrow as pa

# Each is made of a table of pandas and a folder to write to.
FORMS = {
    "pandas": lambda table, folder: table,
    "polars": lambda table, folder: pl.from_pandas(table),
    "lazy polars": lambda table, folder: pl.from_pandas(table).lazy(),
    "arrow": lambda table, folder: pa.Table.from_pandas(table, preserve_index=False),
    "duckdb": lambda table, folder: duckdb.from_arrow(
        pa.Table.from_pandas(table, preserve_index=False)
    ),
    "csv": lambda table, folder: table.to_csv(folder / "t.csv", index=False) or folder / "t.csv",
    "parquet": lambda table, folder: (
        table.to_parquet(folder / "t.parquet", index=False) or folder / "t.parquet"
    ),
}
