//go:build !planted

package scripts

// withMistake is s; with a mistake only in tests, see package planted.
func withMistake(s script) script { return s }
