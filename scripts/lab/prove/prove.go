// Package prove is the frame of the programs of `make prove`: their command line, their
// verdict, and the replay of one world. It does not know what they search.
package prove

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"orderonce/scripts/lab/stage"
)

// Program is one of the programs, with its flags as kong reads them.
type Program interface {
	Prove(ctx context.Context, out, errOut io.Writer) error
}

// Main runs a program until it ends or is interrupted. The exit status is 1 if something
// is broken.
func Main(p Program, name, about string) {
	k := kong.Parse(p, kong.Name(name), kong.UsageOnError(), kong.Description(about))
	// A world lives a millisecond, so there is little to mark and much to allocate.
	debug.SetGCPercent(2000)
	debug.SetMemoryLimit(1 << 30)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := p.Prove(ctx, os.Stdout, os.Stderr)
	stop()
	k.FatalIfErrorf(err)
}

// ErrBroken means that a world broke an invariant.
var ErrBroken = errors.New("invariant broken")

// Verdict prints that nothing is broken, or what was found and the command that shows it
// again, and returns ErrBroken.
func Verdict(out io.Writer, found fmt.Stringer, again string) error {
	if found == nil {
		_, err := fmt.Fprintln(out, "0 violations")
		return err
	}
	_, _ = fmt.Fprintf(out, "%s\n", found)
	if again != "" {
		_, _ = fmt.Fprintf(out, "Replay: go -C scripts/lab run %s\n", again)
	}
	return ErrBroken
}

// Replayed prints the history of one world, and what was found in it.
func Replayed(out io.Writer, h stage.History, found fmt.Stringer, again string) error {
	text := h.String()
	if found != nil {
		text = "As generated:\n\n" + text + "\n\nShrunk:\n"
	}
	if _, err := fmt.Fprintln(out, text); err != nil {
		return err
	}
	return Verdict(out, found, again)
}
