package release_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/package/release"
)

// newModule writes a module with two small functions into a folder of its own.
func newModule(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	put(t, root, "go.mod", "module pretend\n\ngo 1.26.0\n")
	put(t, root, "functions/second/main.go", "package main\n\nfunc main() {}\n")
	put(t, root, "functions/order/main.go", "package main\n\nfunc main() { panic(\"a trace names this file\") }\n")
	return root
}

func put(t *testing.T, root, path, content string) {
	t.Helper()
	path = filepath.Join(root, path)
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(content), 0o600))
}

// built packages a module for this machine's processor, whose standard library is
// compiled already.
func built(t *testing.T, root string) (artifacts []release.Artifact, files map[string]string) {
	t.Helper()
	dir := filepath.Join(root, "build")
	artifacts, err := release.Package(t.Context(), root, runtime.GOARCH, dir)
	must(t, err)
	files = map[string]string{}
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		files[e.Name()] = string(data)
	}
	return artifacts, files
}

func TestTwoBuildsInTwoFoldersMakeTheSameBytes(t *testing.T) {
	t.Parallel()
	clone, archive := newModule(t), newModule(t)
	put(t, clone, ".git/HEAD", "ref: refs/heads/main\n") // git fails here, so the build must not call it
	_, one := built(t, clone)
	artifacts, other := built(t, archive)
	for name := range one {
		if one[name] != other[name] {
			t.Errorf("%s: the two builds of %d and %d bytes differ", name, len(one[name]), len(other[name]))
		}
	}
	var sums strings.Builder
	for _, name := range slices.Sorted(maps.Keys(one)) {
		if name != release.Sums {
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(one[name])), name)
		}
	}
	if diff := cmp.Diff(sums.String(), one[release.Sums]); diff != "" {
		t.Errorf("sums (-got +want):\n%s", diff)
	}
	if one["second.zip"] == "" || one[release.Arch] != runtime.GOARCH {
		t.Errorf("want both zips, and got %q as their processor", one[release.Arch])
	}
	if one["order.cdx.json"] == "" || one["second.cdx.json"] == "" {
		t.Error("want the bill of materials of each zip")
	}
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(one["order.zip"])))
	if got, want := artifacts[0], (release.Artifact{Name: "order", Bytes: len(one["order.zip"]), SHA256: sum}); got != want {
		t.Errorf("artifact = %+v, want %+v", got, want)
	}
}

// The zip's executable is for Linux, that of Build for this machine, with the same flags.
func TestTheFlagsOfARelease(t *testing.T) {
	t.Parallel()
	root := newModule(t)
	_, files := built(t, root)
	executable := unzip(t, []byte(files["order.zip"]))
	if file, err := elf.NewFile(bytes.NewReader(executable)); err != nil {
		t.Error(err)
	} else if _, err := file.Symbols(); !errors.Is(err, elf.ErrNoSymbols) {
		t.Errorf("error = %v, want no symbols in it", err)
	}
	must(t, release.Build(t.Context(), root, filepath.Join(root, "build")))
	here, err := os.ReadFile(filepath.Join(root, "build/second"))
	must(t, err)
	for i, executable := range [][]byte{executable, here} {
		info, err := buildinfo.Read(bytes.NewReader(executable))
		must(t, err)
		want := map[string]string{
			"CGO_ENABLED": "0", "GOOS": []string{"linux", runtime.GOOS}[i], "GOARCH": runtime.GOARCH, "-trimpath": "true",
			"-tags": "lambda.norpc,validator_novalidatefn",
		}
		got := map[string]string{}
		for _, s := range info.Settings {
			if want[s.Key] != "" {
				got[s.Key] = s.Value
			}
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("settings (-got +want):\n%s", diff)
		}
	}
}

func TestPackageReportsWhatIsWrong(t *testing.T) {
	t.Parallel()
	broken := newModule(t)
	put(t, broken, "functions/second/main.go", "package main\n\nfunc main() { undeclared() }\n")
	for _, tt := range []struct{ name, root, arch, want string }{
		{"a folder without functions", t.TempDir(), runtime.GOARCH, "functions/NAME/main.go"},
		{"the compiler's error", broken, runtime.GOARCH, "undefined: undeclared"},
		{"a processor that Go does not know", newModule(t), "arm65", "arm65"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "build")
			if _, err := release.Package(t.Context(), tt.root, tt.arch, dir); err == nil ||
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q in it", err, tt.want)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*")); left != nil {
				t.Errorf("%q was written", left)
			}
		})
	}
}

func TestAZipHasTheExecutableAndNothingThatVaries(t *testing.T) {
	t.Parallel()
	executable := bytes.Repeat([]byte("an executable "), 10_000)
	zipped, err := release.Zip(executable)
	must(t, err)
	if !bytes.Equal(unzip(t, zipped), executable) || len(zipped) > 1000 {
		t.Errorf("%d bytes, want the executable compressed", len(zipped))
	}
	file := entry(t, zipped)
	got := fmt.Sprint(file.Name, " ", file.Mode(), " ", file.Modified.Format(time.DateTime), len(file.Extra), file.Comment)
	if want := "bootstrap -rwxr-xr-x 1980-01-01 00:00:000"; got != want {
		t.Errorf("got %q, want %q: the earliest date of the format, and nothing else", got, want)
	}
}

// entry returns the only file of a zip.
func entry(t *testing.T, zipped []byte) *zip.File {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(zipped), int64(len(zipped)))
	must(t, err)
	if len(r.File) != 1 {
		t.Fatalf("%d files, want one", len(r.File))
	}
	return r.File[0]
}

func unzip(t *testing.T, zipped []byte) []byte {
	t.Helper()
	file, err := entry(t, zipped).Open()
	must(t, err)
	data, err := io.ReadAll(file)
	must(t, err) // also a wrong checksum
	return data
}

// must ends the test on an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
