//go:build !linux

// Package capabilities keeps the rights with which a server was started from the programs that
// it starts.
package capabilities

// KeepToOurselves does nothing: this system has no capabilities.
func KeepToOurselves() error { return nil }
