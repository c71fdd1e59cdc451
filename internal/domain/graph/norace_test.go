//go:build !race

package graph_test

const hostileSeeds = 100
