package main

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"

	"orderonce/adapters/config"
	"orderonce/scripts/orders/audit"
)

// wrong matches the lines that a person must not miss: errors, findings, and verdicts
// that need a person.
func wrong() *regexp.Regexp {
	starts := []string{
		"orders: error: ", "WARNING: ", "FAILED ", "MISMATCH ", "not repaired: ", `charged +\d+ TIMES`, "fix ", "look ",
		"verdict: not yet ",
	}
	for _, c := range audit.Classes() {
		starts = append(starts, `(?: *\d+ )?`+string(c)+" ")
	}
	return regexp.MustCompile("(?m)^(?:" + strings.Join(starts, "|") + ").*")
}

// usage adds the right command line to the error of a wrong one, below it.
func usage(err error) error {
	wrong, ok := errors.AsType[*kong.ParseError](err)
	if !ok {
		return err
	}
	command := cmp.Or(wrong.Context.Selected(), wrong.Context.Model.Node)
	return fmt.Errorf("%w\nusage: orders %s\nmore:  %s --help",
		err, strings.TrimSpace(command.Summary()), command.FullPath())
}

// describe describes a build: version, commit, the commit's time, whether files were
// changed since, and the version of Go.
func describe(info *debug.BuildInfo) string {
	words := []string{"orders " + config.Version}
	for _, s := range info.Settings {
		if name, is := strings.CutPrefix(s.Key, "vcs."); is {
			words = append(words, name+" "+s.Value)
		}
	}
	return strings.Join(append(words, info.GoVersion), ", ")
}
