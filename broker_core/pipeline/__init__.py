"""The data pipeline on Apache Spark: what the ledger tells of every message becomes proof, insight and history. A connector reads the broker into DataFrames,
transforms are functions from DataFrames to DataFrames, a run carries the ledger on into a lake of Parquet files. Without Spark (which is large, and wants Java)
everything else of the service works; only this room imports it, when a command of the pipeline asks for it."""
