//go:build !unix

package main

// findRedis finds none: without signals a process cannot be paused.
func findRedis() (path, why string) {
	return "", "as this system cannot pause a redis-server"
}

// newProcess is not called, as there is no redis-server.
func newProcess(string, string) server { return nil }
