package graph

import "github.com/millrace/millrace/internal/domain/bounds"

// What a definition may hold. The numbers of nodes, edges and shards are the
// product's; the others keep what one author writes from costing everybody.
const (
	MaxNodes  = 2_000
	MaxEdges  = 10_000
	MaxShards = 10_000 // of a node

	MaxRunShards = 100_000
	MaxRunItems  = 64 << 20 // bytes of all texts that a run is scattered over

	maxBytes       = 16 << 20
	maxDepth       = bounds.MaxDepth
	maxValues      = 400_000
	maxNumber      = 400 // characters of one number
	maxEntries     = 500 // parameters, inputs, outputs, ports, variables
	maxLabel       = 200
	maxProse       = 10_000
	maxCommand     = 256 << 10
	maxVariable    = 32 << 10
	maxPath        = 1_024
	maxImage       = 500
	maxExpression  = 2_048
	maxExpressions = 128 << 10 // all distinct expressions together
	maxSchema      = 64 << 10
	maxSchemas     = 256 << 10 // all together
	maxProblems    = 500

	// maxExact is the largest integer that every JSON reader agrees on.
	maxExact = 1 << 53
)
