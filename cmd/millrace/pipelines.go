package main

import (
	"errors"
	"io/fs"

	"github.com/millrace/millrace/clients"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/engine/pipelines"
)

// PipelineSettings say where the engines are.
type PipelineSettings struct {
	Nextflow  string `help:"The folder with bin/nextflow for tasks that launch Nextflow pipelines; without one, nextflow among the machine's programs." group:"tasks"`
	Snakemake string `help:"The virtual environment with Snakemake 9 for tasks that launch Snakemake workflows; without one, snakemake among the machine's programs." group:"tasks"`
}

// Programs are the engines that the tasks of an executor can call: those of this
// machine, so that only tasks on it can.
func (s PipelineSettings) Programs(kind string) pipelines.Programs {
	if kind != "local" {
		return pipelines.Programs{}
	}
	found, _ := s.find()
	return found
}

func (s PipelineSettings) find() (pipelines.Programs, map[pipeline.Engine]error) {
	plugin, err := fs.Sub(clients.Files, "snakemake/src")
	if err != nil { // the name is a constant
		panic(err)
	}
	return pipelines.Find(map[pipeline.Engine]string{pipeline.Nextflow: s.Nextflow, pipeline.Snakemake: s.Snakemake}, plugin)
}

// CheckEngines reports which pipelines tasks could not launch, and what to do.
func (s PipelineSettings) CheckEngines() error {
	_, missing := s.find()
	return errors.Join(missing[pipeline.Nextflow], missing[pipeline.Snakemake])
}
