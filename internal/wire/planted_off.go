//go:build !planted

package wire

// withMistake is s; with a mistake only in tests, see package planted.
func withMistake(s script) script { return s }
