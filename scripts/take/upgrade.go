package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

type upgrade struct {
	Project string   `required:"" type:"existingdir" help:"Folder of the project."`
	Parts   []string `help:"Parts to have from now on, separated by commas; without it, those of the project."`
}

// Run makes the project anew from this version, commits that on the branch of the origin,
// and merges the branch. So git knows what was taken last time, what comes, and what the
// project changed itself.
func (u upgrade) Run(s *session) error {
	before, err := remembered(u.Project)
	if err != nil {
		return err
	}
	o, err := openOrigin(s.ctx, s.root)
	if err != nil {
		return err
	}
	after := project{o.name, o.version, o.commit, before.Module, before.Parts}
	if len(u.Parts) > 0 {
		after.Parts = u.Parts
	}
	if after.Parts, err = o.parts.choose(after.Parts); err != nil {
		return err
	}
	if err := errors.Join(s.clean(u.Project), s.later(before, after)); err != nil {
		return err
	}
	s.step("%s: from %s to %s", before.Module, before, after)
	parent, err := s.vendor(u.Project, before)
	if err != nil {
		return err
	}
	t, err := s.generate(o, after)
	if err != nil {
		return err
	}
	id, err := s.commitTree(u.Project, t, after, parent)
	if err != nil {
		return err
	}
	if _, err := git(s.ctx, u.Project, "update-ref", "refs/heads/"+before.Origin, id); err != nil {
		return err
	}
	return s.merge(u.Project, before, o)
}

// remembered reads what a project was taken from.
func remembered(dir string) (p project, err error) {
	data, err := os.ReadFile(filepath.Join(dir, rememberFile)) //nolint:gosec // G304: of the project
	if errors.Is(err, fs.ErrNotExist) {
		return p, fmt.Errorf("%s has no %s: make new did not make it, so it cannot be upgraded", dir, rememberFile)
	}
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(&p)
	}
	if err != nil {
		return p, fmt.Errorf("%s: %w", rememberFile, err)
	}
	return p, nil
}

// clean returns an error if a merge could touch work that is not committed.
func (s *session) clean(dir string) error {
	top, err := git(s.ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil || !same(top, dir) {
		return errors.Join(fmt.Errorf("%s is not the root of a git repository, so git can't merge there", dir), err)
	}
	status, err := git(s.ctx, dir, "status", "--porcelain")
	if err == nil && status != "" {
		err = fmt.Errorf("%s has changes that are not committed: commit or stash them first\n%s", dir, status)
	}
	return err
}

// later returns an error if the version to come is not a later one.
func (s *session) later(before, after project) error {
	older := semver.Compare("v"+after.Version, "v"+before.Version)
	if older == 0 && before.Commit != "" && after.Commit != before.Commit {
		if _, err := git(s.ctx, s.root, "merge-base", "--is-ancestor", after.Commit, before.Commit); err == nil {
			older = -1
		}
	}
	switch {
	case older < 0:
		return fmt.Errorf("the project has %s, and %s is an earlier version", before, after)
	case older == 0 && after.Commit == before.Commit && slices.Equal(after.Parts, before.Parts):
		return fmt.Errorf("the project has %s already", before)
	default:
		return nil
	}
}

// vendor returns the commit of what was taken last time. A clone of the project has the
// branch from its remote. If nobody has it, the earlier version of this program makes it
// again, and the project's history records that it contains it.
func (s *session) vendor(dir string, before project) (string, error) {
	for _, pattern := range []string{"refs/heads/" + before.Origin, "refs/remotes/*/" + before.Origin} {
		ids, err := git(s.ctx, dir, "for-each-ref", "--format=%(objectname)", pattern)
		if err != nil || ids != "" {
			id, _, _ := strings.Cut(ids, "\n")
			return id, err
		}
	}
	s.step("no branch %s: %s is taken again", before.Origin, before)
	draft, err := os.MkdirTemp("", "take-again-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(draft) //nolint:errcheck // a temporary folder
	clone, again := filepath.Join(draft, "clone"), filepath.Join(draft, "project")
	_, err = git(s.ctx, draft, "clone", "-q", s.root, clone)
	if err == nil {
		_, err = git(s.ctx, clone, "checkout", "-q", before.Commit)
	}
	if err == nil {
		err = s.again(clone, again, before)
	}
	if err == nil {
		_, err = git(s.ctx, dir, "fetch", "-q", again, before.Origin+":"+before.Origin)
	}
	if err == nil {
		_, err = git(s.ctx, dir, "merge", "-q", "--no-edit", "-s", "ours", "--allow-unrelated-histories",
			before.Origin)
	}
	if err != nil {
		return "", fmt.Errorf("no branch %s, and what was taken can't be made again: %w", before.Origin, err)
	}
	return git(s.ctx, dir, "rev-parse", before.Origin)
}

// runAgain makes a project with the program of an earlier version.
func (s *session) runAgain(clone, dir string, p project) error {
	_, err := run(s.ctx, filepath.Join(clone, "scripts"), nil, "go", "run", "./take", "new",
		"--module="+p.Module, "--dir="+dir, "--parts="+strings.Join(p.Parts, ","))
	return err
}

// merge merges the branch of the origin, and prints what came.
func (s *session) merge(dir string, before project, o origin) error {
	for _, section := range between(string(o.files["CHANGELOG.md"].data), before.Version) {
		fmt.Fprintln(s.out, section)
	}
	_, err := git(s.ctx, dir, "merge", "--no-edit", before.Origin)
	conflicts, _ := git(s.ctx, dir, "diff", "--name-only", "--diff-filter=U")
	if err == nil {
		s.step("merged. Next: make test, and docs/guides/upgrade.md before you deploy")
		return nil
	}
	if conflicts == "" {
		return err
	}
	return fmt.Errorf("you and the new version changed the same lines of:\n%s\n"+
		"Edit them, git add them, and git commit; or git merge --abort leaves everything as it was", conflicts)
}

// between returns the sections of a changelog that are later than a version.
func between(changelog, version string) (sections []string) {
	heads := regexp.MustCompile(`(?m)^## \[(.+?)\]`).FindAllStringSubmatchIndex(changelog, -1)
	for i, h := range heads {
		end := len(changelog)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		name := changelog[h[2]:h[3]]
		if semver.IsValid("v"+name) && semver.Compare("v"+name, "v"+version) <= 0 {
			break
		}
		sections = append(sections, strings.TrimSpace(changelog[h[0]:end])+"\n")
	}
	return sections
}
