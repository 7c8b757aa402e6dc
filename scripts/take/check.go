package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// checkParts is `take check`.
type checkParts struct {
	Lists   []string `arg:"" optional:"" help:"Only these lists of parts, such as charge,refund."`
	MakeRun bool     `help:"Run each project too, as make run does, and then its tests: a program can compile and not start."`
}

// Run makes a project of each part alone and of everything without it, and compares what
// the part adds with the list. It goes on after a list that fails.
func (c checkParts) Run(s *session) error {
	o, err := openOrigin(s.ctx, s.root)
	if err != nil {
		return err
	}
	lists := o.parts.lists()
	if len(c.Lists) > 0 {
		lists = nil
		for _, list := range c.Lists {
			lists = append(lists, strings.Split(list, ","))
		}
	}
	lines := map[string]int{}
	var wrong []error
	for i, parts := range lists {
		n, err := c.linesOf(s, o, parts)
		if err != nil && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		name := strings.Join(parts, ",")
		verdict := "ok  "
		if err != nil {
			verdict, wrong = "FAIL", append(wrong, fmt.Errorf("parts %s: %w", name, err))
		}
		lines[name] = n
		s.step("%s  %d of %d, %d lines: %s", verdict, i+1, len(lists), n, name)
	}
	if len(c.Lists) == 0 && len(wrong) == 0 {
		wrong = append(wrong, o.parts.compare(lines))
	}
	return errors.Join(wrong...)
}

// linesOf makes a project and returns its lines.
func (c checkParts) linesOf(s *session, o origin, parts []string) (int, error) {
	parts, err := o.parts.choose(parts)
	if err != nil {
		return 0, err
	}
	var quiet bytes.Buffer
	inner := *s
	inner.out = &quiet
	t, err := inner.generate(o, project{o.name, o.version, o.commit, "github.com/acme/shop", parts})
	if err == nil && c.MakeRun {
		err = s.makeRun(t)
	}
	return t.lines(), err
}

// makeRun runs a project's local system, and the tests that need no processes.
func (s *session) makeRun(t tree) error {
	dir, err := os.MkdirTemp("", "take-run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	if err := t.write(dir); err != nil {
		return err
	}
	if _, err = run(s.ctx, dir, nil, "make", "run"); err != nil {
		return err
	}
	for _, module := range []string{".", "scripts", "scripts/lab"} {
		if _, missing := os.Stat(filepath.Join(dir, module, "go.mod")); err == nil && missing == nil {
			_, err = run(s.ctx, dir, nil, "go", "-C", module, "test", "-vet=off", "./...")
		}
	}
	return err
}

// lists returns what checkParts makes: for each part those that it needs with it, and all
// that don't need it, with it and without it.
func (c catalog) lists() (lists [][]string) {
	add := func(list []string) {
		if !slices.ContainsFunc(lists, func(other []string) bool { return slices.Equal(list, other) }) {
			lists = append(lists, list)
		}
	}
	for _, p := range c.Parts {
		add(c.only(func(q part) bool { return q.Name == p.Name || slices.Contains(p.Needs, q.Name) }))
	}
	for _, p := range c.Parts[1:] { // the first is what each needs
		with, without := c.around(p)
		add(with)
		add(without)
	}
	add(c.Default)
	return lists
}

// around returns the parts that don't need p, with it and without it. Two that need each
// other come and go together.
func (c catalog) around(p part) (with, without []string) {
	with = c.only(func(q part) bool {
		return !slices.Contains(q.Needs, p.Name) || slices.Contains(p.Needs, q.Name)
	})
	return with, c.only(func(q part) bool { return !slices.Contains(q.Needs, p.Name) && q.Name != p.Name })
}

func (c catalog) only(keep func(part) bool) (names []string) {
	for _, p := range c.Parts {
		if keep(p) {
			names = append(names, p.Name)
		}
	}
	return names
}

// compare returns an error for each part whose lines in the list are off by a tenth.
func (c catalog) compare(lines map[string]int) error {
	var wrong []error
	for i, p := range c.Parts {
		got := lines[p.Name]
		if i > 0 {
			with, without := c.around(p)
			got = lines[strings.Join(with, ",")] - lines[strings.Join(without, ",")]
			if got < 10 { // others bring it too, except for its name in lists
				needs := append(slices.Clone(p.Needs), p.Name)
				got = lines[strings.Join(needs, ",")] - lines[strings.Join(p.Needs, ",")]
			}
		}
		if got-p.Lines > got/10 || p.Lines-got > got/10 {
			wrong = append(wrong, fmt.Errorf("%s: part %s: lines = %d, want %d", partsFile, p.Name, p.Lines, got))
		}
	}
	return errors.Join(wrong...)
}
