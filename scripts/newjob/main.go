// Command newjob is `make new-job`: it writes the files of a job of your own, one of the
// four kinds of docs/guides/adapt.md, into the tree of this project. They compile, and
// their tests pass, before you fill in what the job is.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

func main() {
	in := io.Reader(os.Stdin)
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		in = nil
	}
	if err := run(".", os.Args[1:], in, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "new-job:", err)
		os.Exit(1)
	}
}

// run writes a job. args are its kind and its name; it asks a person, if there is one,
// for what is empty.
func run(root string, args []string, person io.Reader, out io.Writer) error {
	var given [2]string
	copy(given[:], args)
	questions := [2]string{
		"Which kind of job?\n" + list() + "\nKIND",
		"A short name for its folder, queue and table, such as label.\nNAME",
	}
	if person != nil {
		lines := bufio.NewScanner(person)
		for i, question := range questions {
			if given[i] == "" {
				fmt.Fprint(out, question+": ")
				lines.Scan()
				given[i] = lines.Text()
			}
		}
	}
	j, err := newJob(root, given[0], given[1])
	if err != nil {
		return err
	}
	changes, err := j.changes(root)
	if err != nil {
		return err
	}
	if err := write(root, changes); err != nil {
		return err
	}
	j.report(out, changes)
	return nil
}

// report prints what was written, and what is left to fill in.
func (j job) report(out io.Writer, changes []change) {
	for _, c := range changes {
		verb := "wrote  "
		if c.old != nil {
			verb = "changed"
		}
		fmt.Fprintf(out, "%s %s\n", verb, c.path)
	}
	fmt.Fprintf(out, `
%[1]s: %[2]s.
Its tests have a %[3]s. See them pass now, in ten seconds:

  ORDERONCE_ALL=1 go test ./%[4]s

Then fill in, in this order (grep -rn TODO %[4]s %[5]s):
  TODO 1  job.go, world_test.go: the fields of the message, their check and their joint content
  TODO 2  %[6]s
  TODO 3  %[5]s: what it does, and how much at once
Run the tests after each. At last write the README of the module anew, and set create_%[1]s = true:

  UPDATE_PAGES=1 go -C scripts test -count=1 ./infra

docs/guides/adapt.md says why each line is as it is, and what to take away to see a test fail.
`, j.Name, j.What, j.Pretend, j.Folder, j.part, j.Todo)
}
