//go:build race

package graph_test

// The race detector makes each of them ten times as slow.
const hostileSeeds = 20
