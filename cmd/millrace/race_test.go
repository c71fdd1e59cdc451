//go:build race

package main

// The race detector takes several times the memory of the program it watches.
const mostMB = 600
