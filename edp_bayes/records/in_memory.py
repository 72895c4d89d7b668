"""How records that an engine has come into memory, for messages that ask for it."""

__all__ = ["IN_MEMORY"]

IN_MEMORY = (
    "give a table in memory, by .collect() of Polars, .df() of DuckDB, .compute() of Dask, "
    ".to_pyarrow() of Ibis, .toPandas() of Spark, or polars.read_parquet() of files"
)
