package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"orderonce/scripts/take/textcut"
)

// rememberFile is where a project remembers what it was taken from.
const rememberFile = ".orderonce.json"

// project is what a project remembers.
type project struct {
	Origin  string   `json:"origin"`
	Version string   `json:"version"`
	Commit  string   `json:"commit,omitempty"`
	Module  string   `json:"module"`
	Parts   []string `json:"parts"`
}

func (p project) String() string {
	commit := p.Commit
	if len(commit) > 12 {
		commit = commit[:12]
	}
	return strings.TrimSpace(p.Origin + " " + p.Version + " " + commit)
}

type newProject struct {
	Module string   `help:"Module path, such as github.com/acme/shop. Its last element names the AWS resources."`
	Dir    string   `help:"Folder of the project, which must be empty or missing."`
	Parts  []string `help:"Parts to take, separated by commas; take parts lists them."`
}

// Run makes a project.
func (n newProject) Run(s *session) error {
	o, err := openOrigin(s.ctx, s.root)
	if err != nil {
		return err
	}
	if err := n.ask(s, o.parts.Default); err != nil {
		return err
	}
	_, err = nameOf(n.Module)
	parts, errParts := o.parts.choose(n.Parts)
	dir, errDir := placeFor(n.Dir, s.root)
	if err := errors.Join(err, errParts, errDir); err != nil {
		return err
	}
	p := project{o.name, o.version, o.commit, n.Module, parts}
	s.step("%s in %s, from %d files of %s%s", n.Module, n.Dir, len(o.files), o.dir, o.state())
	t, err := s.generate(o, p)
	if err != nil {
		return err
	}
	return s.place(t, p, dir, n.Dir)
}

// ask asks for what is not given.
func (n *newProject) ask(s *session, defaults []string) error {
	if n.Module != "" && n.Dir != "" {
		return nil
	}
	if s.in == nil {
		return errors.New("want --module and --dir: make new MODULE=github.com/acme/shop DIR=../shop")
	}
	lines := bufio.NewScanner(s.in)
	question := func(answer *string, text, otherwise string) {
		if *answer == "" {
			fmt.Fprintf(s.out, "%s [%s]: ", text, otherwise)
			lines.Scan()
			if *answer = strings.TrimSpace(lines.Text()); *answer == "" {
				*answer = otherwise
			}
		}
	}
	question(&n.Module, "Module path", "github.com/acme/shop")
	question(&n.Dir, "Folder", "../"+path.Base(n.Module))
	parts := strings.Join(n.Parts, ",")
	question(&parts, "Parts (see docs/parts.md)", strings.Join(defaults, ","))
	n.Parts = strings.FieldsFunc(parts, func(r rune) bool { return r == ',' || r == ' ' })
	return lines.Err()
}

// state says which files are taken, if that is not the commit.
func (o origin) state() string {
	switch {
	case o.commit == "":
		return ", which is no git clone: all that .gitignore does not name"
	case o.changed > 0:
		return fmt.Sprintf(" as they are, %d of them not committed", o.changed)
	default:
		return " at " + o.commit[:12]
	}
}

// placeFor returns the absolute path of a folder that is missing or empty, and not in the
// clone.
func placeFor(dir, root string) (string, error) {
	place, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(place))
	if err != nil {
		return "", fmt.Errorf("folder %s: make its parent first: %w", dir, err)
	}
	place = filepath.Join(parent, filepath.Base(place))
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return "", err
	}
	if below, err := filepath.Rel(root, place); err != nil || below != ".." && !strings.HasPrefix(below, "../") {
		return "", errors.Join(err, fmt.Errorf("folder %s is in the clone %s: take another", dir, root))
	}
	entries, err := os.ReadDir(place)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("folder %s is not empty: it has %s", dir, entries[0].Name())
	}
	return place, nil
}

// place builds the project beside its folder and moves it there when all is done, so that
// an error or a signal leaves nothing behind.
func (s *session) place(t tree, p project, dir, shown string) error {
	draft, err := os.MkdirTemp(filepath.Dir(dir), ".take-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(draft) //nolint:errcheck // gone if it was moved
	//nolint:gosec // G302: a folder of sources
	if err := errors.Join(os.Chmod(draft, 0o755), t.write(draft)); err != nil {
		return err
	}
	_, outside := git(s.ctx, filepath.Dir(dir), "rev-parse", "--show-toplevel")
	if outside != nil {
		if err := s.commit(draft, t, p); err != nil {
			return err
		}
	}
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("folder %s: %w", shown, err)
	}
	if err := os.Rename(draft, dir); err != nil {
		return err
	}
	s.step("done: %d files, %d lines, parts %s", len(t), t.lines(), strings.Join(p.Parts, ", "))
	if outside == nil {
		fmt.Fprintf(s.out,
			"%s is in a repository that exists, so nothing was committed, and make upgrade can't merge there.\n", shown)
	}
	fmt.Fprintf(s.out, "\nNext:\n  cd %s\n"+
		"  make run     # orders on this machine: no account, no credentials\n"+
		"  make deploy  # into your AWS account\n", shown)
	return nil
}

// commit makes the repository: the branch of the origin has what was taken, and main
// begins there.
func (s *session) commit(dir string, t tree, p project) error {
	if _, err := git(s.ctx, dir, "init", "-q", "-b", "main"); err != nil {
		return err
	}
	id, err := s.commitTree(dir, t, p, "")
	if err != nil {
		return err
	}
	_, err = git(s.ctx, dir, "update-ref", "refs/heads/"+p.Origin, id)
	if err == nil {
		_, err = git(s.ctx, dir, "reset", "-q", "--hard", id)
	}
	return err
}

// commitTree writes a commit of exactly these files, whatever is ignored, and returns its
// id. It touches neither the index nor the files of the repository.
func (s *session) commitTree(repository string, t tree, p project, parent string) (string, error) {
	dir, err := os.MkdirTemp("", "take-tree-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	files := filepath.Join(dir, "files")
	if err := t.write(files); err != nil {
		return "", err
	}
	where, err := git(s.ctx, repository, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return "", err
	}
	index := filepath.Join(dir, "index")
	env := []string{"GIT_DIR=" + where, "GIT_WORK_TREE=" + files, "GIT_INDEX_FILE=" + index}
	if _, err := run(s.ctx, files, env, "git", "-c", "core.autocrlf=false", "add", "-A", "-f", "."); err != nil {
		return "", err
	}
	id, err := run(s.ctx, files, env, "git", "write-tree")
	if err != nil {
		return "", err
	}
	message := "take " + p.String() + "\n\nParts: " + strings.Join(p.Parts, ", ") + "."
	args := []string{"commit-tree", id, "-m", message}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	if _, err := git(s.ctx, repository, "config", "user.email"); err != nil { // git refuses to commit as nobody
		env = append(env, "GIT_AUTHOR_NAME=take", "GIT_AUTHOR_EMAIL=take@localhost",
			"GIT_COMMITTER_NAME=take", "GIT_COMMITTER_EMAIL=take@localhost")
	}
	return run(s.ctx, files, env, "git", args...)
}

// generate returns the files of a project: what is taken, under the project's names, and
// built once.
func (s *session) generate(o origin, p project) (tree, error) {
	name, err := nameOf(p.Module)
	if err != nil {
		return nil, err
	}
	t, err := s.cut(o, o.parts.without(p.Parts))
	if err != nil {
		return nil, err
	}
	if t, err = rename(t, o, p.Module, name); err != nil {
		return nil, err
	}
	if err := own(t, o, p, name); err != nil {
		return nil, err
	}
	return s.built(t)
}

// built tidies, compiles and vets every module.
func (s *session) built(t tree) (tree, error) {
	dir, err := os.MkdirTemp("", "take-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	if err := t.write(dir); err != nil {
		return nil, err
	}
	for _, mod := range t.modules() {
		s.step("build and vet %s", path.Join(".", mod))
		for _, args := range [][]string{{"mod", "tidy"}, {"build", "./..."}, {"vet", "./..."}} {
			if _, err := run(s.ctx, filepath.Join(dir, mod), []string{"GOWORK=off"}, "go", args...); err != nil {
				return nil, fmt.Errorf("the project does not build: %w", err)
			}
		}
	}
	if _, there := t[writesTest]; there { // a part that is gone takes its attributes out of each condition
		s.step("write docs/reference/row.md")
		args := []string{"test", "./" + path.Dir(writesTest), "-run=^TestThePageShowsEachWrite$", "-update"}
		if _, err := run(s.ctx, dir, []string{"GOWORK=off"}, "go", args...); err != nil {
			return nil, fmt.Errorf("docs/reference/row.md: %w", err)
		}
	}
	t, err = readTree(dir)
	if err != nil {
		return nil, err
	}
	dead, err := textcut.Links(t.fs())
	if len(dead) > 0 {
		err = fmt.Errorf("links of documents that lead nowhere:\n%s", strings.Join(dead, "\n"))
	}
	return t, err
}

// writesTest writes the conditions of each write into a page.
const writesTest = "adapters/dynamodb/writes_test.go"

// modules returns the folders that have a go.mod, the product's first.
func (t tree) modules() (folders []string) {
	for name := range t {
		if path.Base(name) == "go.mod" {
			folders = append(folders, path.Dir(name))
		}
	}
	slices.Sort(folders)
	return folders
}
