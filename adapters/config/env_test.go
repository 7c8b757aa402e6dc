package config_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
)

type backend struct {
	Timeout time.Duration `env:"TIMEOUT,required"`
}

type settings struct {
	Table   string                   `env:"TABLE,notEmpty" want:"the table's name"`
	Level   slog.Level               `env:"LEVEL" envDefault:"INFO"`
	Workers int                      `env:"WORKERS" envDefault:"10"`
	Debug   bool                     `env:"DEBUG"`
	Queue   config.URL               `env:"QUEUE"`
	Key     config.Secret            `env:"KEY,notEmpty"`
	Keys    []config.Secret          `env:"KEYS"`
	ByName  map[string]config.Secret `env:"BY_NAME"`
	Backend backend
}

func TestRead(t *testing.T) {
	got, err := config.Read[settings]([]string{
		"TABLE=orders", "LEVEL=debug", "QUEUE=https://sqs.example/1/orders", "KEY=" + canary, "KEYS=a,b",
		"TIMEOUT=1s", "OTHER=x",
	})
	must(t, err)
	want := settings{
		Table: "orders", Level: slog.LevelDebug, Workers: 10, Queue: "https://sqs.example/1/orders",
		Key: config.NewSecret(canary), Keys: []config.Secret{config.NewSecret("a"), config.NewSecret("b")},
		Backend: backend{time.Second},
	}
	if diff := cmp.Diff(got, want, cmp.AllowUnexported(config.Secret{})); diff != "" {
		t.Errorf("settings: got -, want +\n%s", diff)
	}
}

func TestReadReportsEveryProblemTogether(t *testing.T) {
	_, err := config.Read[settings]([]string{
		"LEVEL=loud", "WORKERS=many", "DEBUG=perhaps", "QUEUE=orders", "KEY=", "BY_NAME=" + canary,
		"TIMEOUT=soon\n",
	})
	var got *config.Error
	if !errors.As(err, &got) {
		t.Fatalf("error = %v, want a *config.Error", err)
	}
	want := []string{
		`TABLE: want the table's name, got missing`, `LEVEL: want a value of type slog.Level, got "loud"`,
		`WORKERS: want an integer, got "many"`, `DEBUG: want true or false, got "perhaps"`,
		`QUEUE: want a URL, got "orders"`,
		`KEY: want a secret, got empty`,
		`BY_NAME: want a value of type map[string]config.Secret, got [redacted]`,
		`TIMEOUT: want a duration such as "30s", got "soon\n"`,
	}
	if diff := cmp.Diff(got.Problems, want); diff != "" {
		t.Errorf("problems: got -, want +\n%s", diff)
	}
	if want := "invalid environment:\n  " + strings.Join(want, "\n  "); err.Error() != want {
		t.Errorf("error = %q, want %q", err, want)
	}
}

// Another variable may be printed anywhere, for example in an error of the table.
func TestAKeyIsRefusedAndNotShownInAnyOtherVariable(t *testing.T) {
	for _, key := range []string{
		"sk_test_" + canary, "sk_live_" + canary, "sk_org_live_" + canary, "rk_test_" + canary, "rk_live_" + canary,
		"whsec_" + canary, `{"key":"sk_live_` + canary + `"}`, "https://sk_live_" + canary + "@api.example",
	} {
		for _, variable := range []string{"TABLE", "LEVEL", "WORKERS", "DEBUG", "QUEUE", "TIMEOUT"} {
			environ := []string{"TABLE=orders", "KEY=k", "TIMEOUT=1s", variable + "=" + key}
			_, err := config.Read[settings](environ)
			want := ", got what looks like a key: [redacted]"
			if err == nil || !strings.Contains(err.Error(), "\n  "+variable+": want") || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s=%s: got %v, want a problem of %s that ends with %q", variable, key, err, variable, want)
			}
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("the error contains the key: %v", err)
			}
		}
		if _, err := config.Read[settings]([]string{"TABLE=orders", "TIMEOUT=1s", "KEY=" + key}); err != nil {
			t.Errorf("KEY=%s: got %v, want a secret accepted", key, err)
		}
	}
	for _, table := range []string{"task_test_orders", "rk_orders", "desk_live_orders", "whsecret"} {
		got, err := config.Read[settings]([]string{"KEY=k", "TIMEOUT=1s", "TABLE=" + table})
		if err != nil || got.Table != table {
			t.Errorf("TABLE=%s: got %q, %v, want it accepted", table, got.Table, err)
		}
	}
}

// picky is a secret whose error shows the value.
type picky struct{ config.Secret }

func (*picky) UnmarshalText(text []byte) error { return fmt.Errorf("invalid: %s", text) }

func TestAnErrorOfTheLibraryIsNotShown(t *testing.T) {
	type keys struct {
		List []struct {
			Key picky `env:"KEY"`
		} `envPrefix:"LIST"`
	}
	_, err := config.Read[keys]([]string{"LIST_0_KEY=" + canary})
	want := "invalid environment:\n  config_test.keys: a field cannot be read from variables"
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func TestAURLHasASchemeAndAHost(t *testing.T) {
	for _, text := range []string{"https://sqs.eu-west-1.amazonaws.com/1/orders", "http://127.0.0.1:4242"} {
		var got config.URL
		if err := got.UnmarshalText([]byte(text)); err != nil || string(got) != text {
			t.Errorf("UnmarshalText(%q) = %q, %v, want the URL", text, got, err)
		}
	}
	for _, text := range []string{"", "orders", "127.0.0.1:4242", "ftp://files.example", "https://", "http://[::1"} {
		var got config.URL
		want := fmt.Sprintf("not a URL: %q: want http:// or https:// and a host", text)
		if err := got.UnmarshalText([]byte(text)); err == nil || err.Error() != want || got != "" {
			t.Errorf("UnmarshalText(%q) = %q, %v, want %s", text, got, err, want)
		}
	}
}

// shift is an environment in which two variables depend on each other.
type shift struct {
	Begin time.Duration `env:"BEGIN"`
	End   time.Duration `env:"END"`
}

func (s shift) Problems() []string {
	if s.Begin < s.End {
		return nil
	}
	return []string{"BEGIN, END: want an end after the beginning"}
}

func TestReadReportsProblemsOfSeveralVariables(t *testing.T) {
	for end, want := range map[string]string{
		"2s":   "",
		"1s":   "BEGIN, END: want an end after the beginning",
		"noon": `END: want a duration such as "30s", got "noon"`, // its consequences are not reported
	} {
		got := ""
		_, err := config.Read[shift]([]string{"BEGIN=1s", "END=" + end})
		if invalid, ok := errors.AsType[*config.Error](err); ok {
			got = strings.Join(invalid.Problems, "; ")
		}
		if got != want {
			t.Errorf("END=%s: got %q, want %q", end, got, want)
		}
	}
}
