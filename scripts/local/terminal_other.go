//go:build !unix

package main

import "os"

// ownTerminal does nothing: only Unix has process groups in the foreground.
func ownTerminal(*os.File) (release func()) { return func() {} }
