"""Runs the queries of a document on the Parquet tables of a folder, its SQL in DuckDB and its
Python with polars: DOCUMENT FOLDER. Prints the rows of each query as JSON."""

import json
import os
import re
import sys

import duckdb
import polars

document, folder = sys.argv[1:]
os.chdir(folder)
with open(document) as file:
    blocks = re.findall(r"```(sql|python)\n(.*?)```", file.read(), re.S)
queries = [text for language, text in blocks if language == "sql"]
assert queries, "the document has queries"
out = []
for query in queries:
    result = duckdb.sql(query)
    out.append([dict(zip(result.columns, map(str, row))) for row in result.fetchall()])
frames = []
for text in (text for language, text in blocks if language == "python" and "polars" in text):
    scope = {}
    exec(compile(text, document, "exec"), scope)
    frames.append(json.loads(scope["answer"].write_json()))
events = polars.read_parquet("events.parquet")
sites = polars.read_parquet("sites.parquet")
assert duckdb.sql("select count(*) from 'events.parquet'").fetchall()[0][0] == events.height
names = polars.read_parquet("stacks.parquet")["function"].unique().sort().to_list()
print(
    json.dumps(
        {
            "queries": out,
            "polars": frames,
            "sites": [int(sites["bytes"].sum()), int(sites["blocks"].sum())],
            "events": events.height,
            "names": names,
        }
    )
)
