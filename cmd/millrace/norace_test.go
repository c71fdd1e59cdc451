//go:build !race

package main

const mostMB = 200
