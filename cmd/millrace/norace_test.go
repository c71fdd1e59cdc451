//go:build !race

package main

const mostMB = 200

const hostileDefinitions = 100
