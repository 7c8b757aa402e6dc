// Command take makes a project of your own from this clone, with the parts that you name
// (`make new`), and brings a later version of the clone into it (`make upgrade`).
//
// It copies the tracked files, cuts away what mentions a part that was not taken, renames
// the module and the product, and checks that the result builds. parts.hcl says what
// belongs to which part. The source has no markers: what cannot be cut is an error that
// names file and line.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"
)

type commands struct {
	New     newProject `cmd:"" help:"Make a project."`
	Upgrade upgrade    `cmd:"" help:"Merge this version into a project that an earlier one made."`
	Parts   listParts  `cmd:"" help:"List the parts: what each is, promises, needs and costs."`
	Check   checkParts `cmd:"" help:"Make a project of each part alone, and of everything without it; half an hour."`
}

// session is what every command has from outside.
type session struct {
	ctx   context.Context //nolint:containedctx // one command, from its start to its end
	root  string          // the clone
	in    io.Reader       // nil if nobody can answer
	out   io.Writer
	since func() time.Duration                     // the start
	again func(clone, dir string, p project) error // newProject.Run of another version
}

func main() {
	var c commands
	k := kong.Parse(&c, kong.Name("take"), kong.UsageOnError(),
		kong.Description("Make a project of your own from this clone, and upgrade it: docs/guides/take.md."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	start := time.Now()
	since := func() time.Duration { return time.Since(start) }
	s := &session{ctx: ctx, out: os.Stdout, since: since}
	s.again = s.runAgain
	if term.IsTerminal(int(os.Stdin.Fd())) {
		s.in = os.Stdin
	}
	root, err := findRoot()
	if err == nil {
		s.root = root
		err = k.Run(s)
	}
	stop()
	k.FatalIfErrorf(err)
}

// step prints what begins now.
func (s *session) step(format string, args ...any) {
	fmt.Fprintf(s.out, "%5.1fs  %s\n", s.since().Seconds(), fmt.Sprintf(format, args...))
}
