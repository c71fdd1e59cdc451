package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/millrace/millrace/cmd/millrace/executors"
)

// executors are those of this server, in order of preference.
func (s *settings) executors() ([]executors.Named, error) {
	if s.ExecutorsFile != "" {
		text, err := os.ReadFile(s.ExecutorsFile)
		if err != nil {
			return nil, fmt.Errorf("--executors-file: %w", err)
		}
		list, err := executors.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("--executors-file: %w", err)
		}
		return list, nil
	}
	capacity, err := executors.ParseCapacity(s.Capacity)
	if err != nil || s.Executor == "none" {
		return nil, err
	}
	return []executors.Named{{Name: s.Executor, Kind: s.Executor, Capacity: capacity, Percent: 100, Only: true, Slurm: s.Slurm, Kubernetes: s.Kubernetes}}, nil
}

// servesAttempts reports whether tasks out of our reach may come to this server: its
// own, or those of workers beside it.
func (s *settings) servesAttempts() bool {
	list, _ := s.executors()
	return s.AttemptsURL != "" || slices.ContainsFunc(list, func(x executors.Named) bool { return x.Kind == "kubernetes" })
}

// executorProblems lists what is wrong with the settings of executors alone.
func (s *settings) executorProblems() error {
	switch {
	case s.ExecutorsFile != "" && s.SlurmFolder != "":
		return errors.New("with --executors-file the settings of Slurm stand in the file")
	case s.ExecutorsFile == "" && s.Executor == "none" && s.Embedded():
		return errors.New("--executor none needs --database-url postgres://… and workers beside this server: nobody else can work on the embedded database")
	}
	_, err := s.executors()
	if s.ExecutorsFile == "" && s.Executor == "slurm" {
		err = errors.Join(err, s.Slurm.Check())
	}
	if s.ExecutorsFile == "" && s.Executor == "kubernetes" {
		err = errors.Join(err, s.Kubernetes.Check())
	}
	return err
}
