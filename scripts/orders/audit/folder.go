package audit

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"orderonce/domain/order"
)

// Parts is the number of files of a folder. What there is of an order is in one of them,
// so a join needs the memory of one part: of an audit, 40 MB of ten million orders.
const Parts = 256

// Job is what an audit compares.
type Job struct {
	Window Window      `json:"window"`
	Scope  order.Scope `json:"scope"`
	Table  string      `json:"table"`
	Mode   order.Mode  `json:"mode"`
}

// Side is how far one side was read.
type Side struct {
	Next    string `json:"next"`
	Done    bool   `json:"done"`
	Calls   int    `json:"calls"`
	Items   int    `json:"items"`
	Skipped int    `json:"skipped"` // see Page
}

// Summary counts orders and what was found.
type Summary struct {
	Payments   Side          `json:"payments"`
	Refunds    Side          `json:"refunds"` // of PaymentIntents of any time
	Rows       Side          `json:"rows"`
	Orders     int           `json:"orders"`
	Matched    int           `json:"matched"`
	InProgress int           `json:"inProgress"`
	Strays     int           `json:"strays"` // intents, not orders
	Differing  int           `json:"differing"`
	Findings   map[Class]int `json:"findings"`
	Risks      map[Risk]int  `json:"risks"`
}

// Folder keeps an audit on disk, so that its size does not matter and an interrupted one
// can be continued. It has no customer and no payment method, only ids, amounts and
// statuses.
type Folder struct {
	Files // of the parts, and then of the findings

	dir   string
	state state
}

// state is how far the audit is. Sizes are the lengths of the files at that point: what
// is behind them was written after it, and Stripe or the table is read again.
type state struct {
	Job     Job     `json:"job"`
	Summary Summary `json:"summary"`
	Joined  int     `json:"joined"` // number of parts
	Sizes   []int64 `json:"sizes"`
}

// Files are files of lines that grow.
type Files []*file

type file struct {
	*bufio.Writer

	f     *os.File
	saved int64 // bytes
}

// ErrOtherJob means that the folder is of another audit.
var ErrOtherJob = errors.New("the folder is of another audit")

// Open opens the folder of an interrupted audit, or an empty one for a Job that is not
// zero.
func Open(dir string, job Job) (*Folder, error) {
	f := &Folder{dir: dir, state: state{Job: job, Sizes: make([]int64, Parts+1)}}
	f.state.Summary.Findings, f.state.Summary.Risks = map[Class]int{}, map[Risk]int{}
	b, err := os.ReadFile(f.path("state.json"))
	switch {
	case errors.Is(err, os.ErrNotExist) && job != (Job{}):
	case err != nil:
		return nil, fmt.Errorf("work folder %s: %w", dir, err)
	default:
		if err := json.Unmarshal(b, &f.state); err != nil || len(f.state.Sizes) != Parts+1 {
			return nil, fmt.Errorf("work folder %s: corrupt state.json: %w", dir, err)
		}
	}
	if f.Files, err = OpenFiles(f.partPath, f.state.Sizes); err != nil {
		return nil, fmt.Errorf("work folder %s: %w", dir, err)
	}
	return f, nil
}

// OpenFiles opens files to write behind their first bytes, one for each of the sizes.
// What else they have is overwritten, and is not read.
func OpenFiles(path func(int) string, sizes []int64) (all Files, err error) {
	for n, size := range sizes {
		f, err := os.OpenFile(filepath.Clean(path(n)), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all = append(all, &file{bufio.NewWriterSize(f, 8<<10), f, size})
		if _, err := f.Seek(size, io.SeekStart); err != nil {
			return nil, errors.Join(err, all.Close())
		}
	}
	return all, nil
}

// Job returns what the audit compares.
func (f *Folder) Job() Job { return f.state.Job }

// Close closes the files. What was appended after the last save is read again later.
func (f Files) Close() error {
	var errs []error
	for _, opened := range f {
		errs = append(errs, opened.f.Close())
	}
	return errors.Join(errs...)
}

// Remove deletes the folder, unless it has files that are not the audit's.
func (f *Folder) Remove() error {
	errs := []error{f.Close(), os.Remove(f.path("state.json"))}
	for n := range f.Files {
		errs = append(errs, os.Remove(f.partPath(n)))
	}
	return errors.Join(append(errs, os.Remove(f.dir))...)
}

func (f *Folder) path(name string) string { return filepath.Join(f.dir, name) }

func (f *Folder) partPath(n int) string {
	if n == Parts {
		return f.path("findings.jsonl")
	}
	return f.path(fmt.Sprintf("part-%03d.jsonl", n))
}

type entry struct {
	Payment *Payment `json:"p,omitempty"`
	Row     *Row     `json:"r,omitempty"`
}

// PartOf returns the part of an order.
func PartOf(id order.ID) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // it never fails
	return int(h.Sum32() % Parts)
}

// Append appends a line to a file.
func (f Files) Append(n int, line any) error {
	b, err := json.Marshal(line)
	if err == nil {
		_, err = f[n].Write(append(b, '\n'))
	}
	return err
}

// Flush makes what was appended readable.
func (f Files) Flush() error {
	for _, opened := range f {
		if err := opened.Flush(); err != nil {
			return err
		}
		var err error
		if opened.saved, err = opened.f.Seek(0, io.SeekCurrent); err != nil {
			return err
		}
	}
	return nil
}

// save makes everything so far durable, the state last.
func (f *Folder) save() error {
	if err := f.Flush(); err != nil {
		return err
	}
	for n, opened := range f.Files {
		f.state.Sizes[n] = opened.saved
	}
	b, err := json.Marshal(f.state)
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.path("state.new"), b, 0o600); err != nil {
		return err
	}
	return os.Rename(f.path("state.new"), f.path("state.json"))
}

// Lines reads a file from its start to what was flushed.
func Lines[T any](f Files, n int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		d := json.NewDecoder(io.NewSectionReader(f[n].f, 0, f[n].saved))
		for {
			var line T
			err := d.Decode(&line)
			if errors.Is(err, io.EOF) || !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// Plans returns what a repair does, in the order in which it was found.
func (f *Folder) Plans() iter.Seq2[Plan, error] { return Plans(Lines[Finding](f.Files, Parts)) }

// sortedAtOnce bounds the memory of Findings.
const sortedAtOnce = 10_000

// Findings returns the findings by class and, unless there are thousands, by order id.
func (f *Folder) Findings() iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		var some []Finding
		flush := func() bool {
			slices.SortFunc(some, func(a, b Finding) int { return cmp.Compare(a.OrderID, b.OrderID) })
			more := true
			for n := 0; n < len(some) && more; n++ {
				more = yield(some[n], nil)
			}
			some = some[:0]
			return more
		}
		for _, class := range Classes() {
			for finding, err := range Lines[Finding](f.Files, Parts) {
				if err != nil {
					yield(Finding{}, err)
					return
				}
				if finding.Class != class {
					continue
				}
				if some = append(some, finding); len(some) == sortedAtOnce && !flush() {
					return
				}
			}
			if !flush() {
				return
			}
		}
	}
}
