//go:build race

package main

// The race detector takes several times the memory of the program it watches.
const mostMB = 600

// It makes each of them several times as slow.
const hostileDefinitions = 30
