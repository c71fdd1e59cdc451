// Package deploy holds the compose file and the chart against the libraries of those
// who read them, and starts what they describe. It is a module of its own, since nothing
// else needs those.
package deploy
