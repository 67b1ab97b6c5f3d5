package proxy

import (
	"time"

	"cdpmux/proxy/download"
	"cdpmux/routing"
)

// move does something about a staged file beside all else.
func (s *Server) move(do func()) {
	s.moves.Add(1)
	s.wg.Go(func() {
		defer s.moves.Done()
		do()
	})
}

// settle has a finished download put where it belongs.
func (s *Server) settle(d *routing.Download) {
	s.move(func() {
		place, err := s.cfg.Downloads.Settle(time.Now(), download.File(*d))
		log := s.log.With().Str("client", routing.ShortID(d.Client)).Str("file", d.Name).Logger()
		switch {
		case err != nil:
			log.Error().Err(err).Msg("a download is lost: free space on the disk, or make the download directory writable, and have it fetched again")
		case place.Kept != nil:
			log.Warn().Err(place.Kept).Str("path", place.Path).Msg("a download is not in the directory that its client asked for")
		default:
			log.Info().Str("path", place.Path).Int64("bytes", place.Size).Msg("downloaded")
		}
		if place.Warning != nil {
			log.Warn().Err(place.Warning).Msg("a download arrived, and something beside it failed")
		}
		path := place.Path
		if place.Link != "" {
			path = place.Link
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil {
			s.downloadFailed(d, err.Error())
		} else {
			s.downloads.Arrived++
		}
		s.apply(s.router.Saved(time.Now(), d.GUID, path, err != nil, s.actions))
	})
}

// discard throws a download away that is finished, or given up: Chrome may
// keep what it has of that.
func (s *Server) discard(d *routing.Download) {
	s.move(func() {
		if err := s.cfg.Downloads.Discard(d.GUID); err != nil {
			s.log.Error().Err(err).Msg("a download that nobody wants stays in the staging directory")
		}
	})
}

// downloadFailed counts a download that did not arrive. The lock is held.
func (s *Server) downloadFailed(d *routing.Download, why string) {
	s.downloads.Failed++
	s.downloads.Error = d.Name + ": " + why
}

// aborted says that Chrome gave a download up. The lock is held.
func (s *Server) aborted(d *routing.Download) {
	s.discard(d)
	const why = "Chrome gave it up: the site or the page ended it, or the disk is full"
	s.downloadFailed(d, why)
	s.log.Warn().Str("client", routing.ShortID(d.Client)).Str("file", d.Name).Str("directory", s.cfg.Downloads.Staging()).Msg("a download did not arrive: " + why)
}

// meet prepares the staging directory for the browser. What a dead browser left
// half done goes when it is another one; files that are complete, and whose end
// nobody was there to hear of, are kept.
func (s *Server) meet(another bool) {
	if s.cfg.Downloads == nil {
		return
	}
	s.moves.Wait() // what the last browser finished is not left over
	now := time.Now()
	var err error
	if another {
		// Through a gap clients know where their files are: they stay there.
		s.mu.Lock()
		gap := s.redial.on
		s.mu.Unlock()
		err = s.cfg.Downloads.Started(now, s.cfg.ArchiveDownloads && !gap)
	} else {
		err = s.cfg.Downloads.Rescue(now, func(string) bool { return false })
	}
	if err != nil {
		s.log.Error().Err(err).Msg("download directory: what was there before could not be put in order")
	}
}
