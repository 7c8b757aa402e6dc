package dynamodbtest_test

import (
	stdcmp "cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
)

func TestFind(t *testing.T) {
	const installed = "adapters/dynamodb/dynamodbtest/engine/node_modules/@dynoxide/linux-x64/dynoxide"
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), 0o600)
	write(t, filepath.Join(root, installed), 0o700)
	write(t, filepath.Join(root, "path/dynoxide"), 0o700)
	write(t, filepath.Join(root, "plain/dynoxide"), 0o600)
	deep := filepath.Join(root, "adapters/dynamodb")
	nested := filepath.Join(root, "scripts/lab")
	write(t, filepath.Join(nested, "go.mod"), 0o600)

	tests := map[string]struct {
		env  map[string]string
		dir  string // "" is a folder of the root module
		want dynamodbtest.Location
	}{
		"an endpoint in the environment comes first": {
			env:  map[string]string{"DYNAMODB_ENDPOINT": "http://127.0.0.1:8000", "PATH": filepath.Join(root, "path")},
			want: dynamodbtest.Location{Endpoint: "http://127.0.0.1:8000"},
		},
		"a program on PATH comes before the installed one": {
			env:  map[string]string{"PATH": "/nowhere:" + filepath.Join(root, "path")},
			want: dynamodbtest.Location{Binary: filepath.Join(root, "path/dynoxide")},
		},
		"the installed one is found from any folder of the module": {
			want: dynamodbtest.Location{Binary: filepath.Join(root, installed)},
		},
		"the installed one is found from a nested module": {
			dir:  nested,
			want: dynamodbtest.Location{Binary: filepath.Join(root, installed)},
		},
		"a file that is not executable is ignored": {
			env:  map[string]string{"PATH": filepath.Join(root, "plain")},
			want: dynamodbtest.Location{Binary: filepath.Join(root, installed)},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := dynamodbtest.Find(func(name string) string { return tt.env[name] }, stdcmp.Or(tt.dir, deep))
			must(t, err)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("location (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheErrorOfFindDescribesHowToGetAnEngine(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), 0o600)
	_, err := dynamodbtest.Find(noEnvironment, root)
	if !errors.Is(err, dynamodbtest.ErrNoEngine) {
		t.Fatalf("got %v, want ErrNoEngine", err)
	}
	for _, step := range []string{
		"make engine", "docker run -d -p 127.0.0.1:8000:8000 amazon/dynamodb-local",
		"DYNAMODB_ENDPOINT=http://127.0.0.1:8000",
	} {
		if !strings.Contains(err.Error(), step) {
			t.Errorf("got error %v, want one with %q", err, step)
		}
	}
}

func noEnvironment(string) string { return "" }

func write(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o750))
	must(t, os.WriteFile(path, nil, mode))
}
