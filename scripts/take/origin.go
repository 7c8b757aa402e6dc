package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing/fstest"

	"golang.org/x/mod/modfile"
)

const (
	partsFile   = "scripts/take/parts.hcl"
	versionFile = "adapters/config/version.go"
)

// tree is the files of a project, by path.
type tree map[string]file

type file struct {
	mode fs.FileMode // 0o644, 0o755, or with ModeSymlink and the target as data
	data []byte
}

// origin is the version of the clone that a project is taken from.
type origin struct {
	dir     string
	module  string // its path
	name    string // of the product
	version string
	commit  string // "" outside of git
	changed int    // tracked files that differ from the commit
	files   tree
	parts   catalog
}

// findRoot returns the clone around the working directory.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, partsFile)); missing == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no folder above has %s: run it in a clone", partsFile)
		}
	}
	return "", err
}

// openOrigin reads the tracked files of a clone as they are on disk or, outside of git,
// every file that .gitignore does not name.
func openOrigin(ctx context.Context, dir string) (origin, error) {
	o := origin{dir: dir, files: tree{}}
	args := []string{"ls-files", "-z"}
	if top, err := git(ctx, dir, "rev-parse", "--show-toplevel"); err == nil && same(top, dir) {
		if o.commit, err = git(ctx, dir, "rev-parse", "HEAD"); err != nil {
			return o, err
		}
		status, err := git(ctx, dir, "status", "--porcelain", "--untracked-files=no")
		if err != nil {
			return o, err
		}
		o.changed = len(strings.FieldsFunc(status, func(r rune) bool { return r == '\n' }))
	} else {
		empty, err := os.MkdirTemp("", "take-git-")
		if err != nil {
			return o, err
		}
		defer os.RemoveAll(empty) //nolint:errcheck // a temporary folder
		if _, err := git(ctx, empty, "init", "-q"); err != nil {
			return o, err
		}
		args = []string{
			"--git-dir=" + empty + "/.git", "--work-tree=" + dir, "ls-files", "-z", "-o", "--exclude-standard",
		}
	}
	names, err := git(ctx, dir, args...)
	if err != nil {
		return o, err
	}
	for name := range strings.SplitSeq(strings.Trim(names, "\x00"), "\x00") {
		f, err := readFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, and not committed
		}
		if err != nil {
			return o, err
		}
		o.files[name] = f
	}
	o.module = modfile.ModulePath(o.files["go.mod"].data)
	o.name = path.Base(o.module)
	if o.version, err = versionOf(o.files); err != nil {
		return o, err
	}
	o.parts, err = readParts(o.files)
	return o, err
}

// versionOf returns the release of the source.
func versionOf(files tree) (string, error) {
	match := regexp.MustCompile(`const Version = "(.+)"`).FindSubmatch(files[versionFile].data)
	if match == nil {
		return "", fmt.Errorf("%s: no constant Version", versionFile)
	}
	return string(match[1]), nil
}

func same(a, b string) bool {
	one, err1 := filepath.EvalSymlinks(a)
	two, err2 := filepath.EvalSymlinks(b)
	return cmp.Or(err1, err2) == nil && one == two
}

func readFile(name string) (file, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return file{}, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(name)
		return file{fs.ModeSymlink, []byte(target)}, err
	}
	data, err := os.ReadFile(name) //nolint:gosec // G304: a file of the clone or of a project
	return file{0o644 | info.Mode()&0o111, data}, err
}

// write writes the files below dir.
func (t tree) write(dir string) error {
	for name, f := range t {
		target := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // G301: as git does
			return err
		}
		err := error(nil)
		if f.mode&fs.ModeSymlink != 0 {
			err = os.Symlink(string(f.data), target)
		} else if err = os.WriteFile(target, f.data, 0o644); err == nil { //nolint:gosec // G306: as git does
			err = os.Chmod(target, f.mode)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readTree reads every file below dir.
func readTree(dir string) (tree, error) {
	t := tree{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		t[filepath.ToSlash(relative)], err = readFile(name)
		return err
	})
	return t, err
}

func (t tree) fs() fstest.MapFS {
	files := fstest.MapFS{}
	for name, f := range t {
		files[name] = &fstest.MapFile{Data: f.data, Mode: f.mode}
	}
	return files
}

func (t tree) lines() (n int) {
	for _, f := range t {
		n += bytes.Count(f.data, []byte{'\n'})
	}
	return n
}

// git runs git in dir and returns what it prints, without the last newline.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	return run(ctx, dir, nil, "git", args...)
}

// run runs a command in dir. The error has what the command printed.
func run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // G204: git, or go
	var out, problem bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = dir, &out, &problem, append(os.Environ(), env...)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out.Bytes(), problem.Bytes())
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}
