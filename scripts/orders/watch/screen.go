package watch

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// Screen is a terminal that shows the newest snapshot. It implements tea.Model.
type Screen struct {
	Title   string
	Sources Sources
	Every   time.Duration

	context       context.Context //nolint:containedctx // a tea.Model has no other place for it
	reading       *sync.Mutex     // held by a read
	now, before   Snapshot
	scanned       *Scanned
	width, height int
}

// Show shows the deployment until the person quits, or the context ends.
func (s Screen) Show(ctx context.Context, options ...tea.ProgramOption) error {
	reads, cancel := context.WithCancel(ctx)
	defer cancel()
	s.context, s.reading = reads, new(sync.Mutex)
	_, err := tea.NewProgram(s, append(options, tea.WithContext(ctx))...).Run()
	cancel()
	s.reading.Lock() // it puts back the dead letters that it holds: they would stay hidden for minutes
	defer s.reading.Unlock()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil { // Ctrl-C is how a person ends it
		err = nil
	}
	return err
}

// Init reads the first snapshot and starts the scan.
func (s Screen) Init() tea.Cmd { return tea.Batch(s.read, s.scan) }

type tick struct{}

// read reads a snapshot.
//
//nolint:ireturn // as a tea.Cmd
func (s Screen) read() tea.Msg {
	s.reading.Lock()
	defer s.reading.Unlock()
	return s.Sources.Read(s.context)
}

// scan counts all orders. Scans follow one another without a pause: the rate is their
// own.
//
//nolint:ireturn // as a tea.Cmd
func (s Screen) scan() tea.Msg {
	if s.Sources.Scan == nil {
		return nil
	}
	orders, err := s.Sources.Scan(s.context)
	if err != nil {
		return err
	}
	return Scanned{At: s.Sources.Now(), Orders: orders}
}

// Update handles keys, the size of the terminal, and what was read.
//
//nolint:ireturn // as tea.Model
func (s Screen) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tea.KeyPressMsg:
		switch m.String() {
		case "q", "esc", "ctrl+c":
			return s, tea.Quit
		}
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case Snapshot:
		m.Scanned = s.scanned
		s.before, s.now = s.now, m
		return s, tea.Tick(s.Every, func(time.Time) tea.Msg { return tick{} })
	case tick:
		return s, s.read
	case Scanned:
		s.scanned = &m
		return s, s.scan
	case error:
		s.now.failed("scan", m)
	}
	return s, nil
}

// View draws the snapshot, cut to the terminal's size.
func (s Screen) View() tea.View {
	text := "reading ...\n"
	if !s.now.At.IsZero() {
		text = s.now.Text(s.before)
	}
	lines := append([]string{s.Title, ""}, strings.Split(text, "\n")...)
	lines = append(lines, "q quits. SQS counts approximately.")
	for n := range lines {
		if s.width > 0 {
			lines[n] = ansi.Truncate(lines[n], s.width, "…")
		}
	}
	if s.height > 0 && len(lines) > s.height {
		lines = lines[:s.height]
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	return v
}
