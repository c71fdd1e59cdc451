// Package snakemake holds the logger plugin of Snakemake, which launched pipelines
// report their steps by.
package snakemake

import "embed"

// Files are those of the plugin, below src.
//
//go:embed src/snakemake_logger_plugin_millrace/*.py
var Files embed.FS
