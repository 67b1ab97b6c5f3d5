package main

import (
	"errors"
	"net"

	"github.com/rs/zerolog"

	"cdpmux/lifecycle"
	"cdpmux/wrapper"
)

// ownWrapper writes the script of the store that is about to be served. A serve
// without one is a serve all the same.
func (o *serveOptions) ownWrapper(home *lifecycle.Home, store *lifecycle.Store, addr net.Addr, log zerolog.Logger) {
	if o.noWrapper {
		return
	}
	err := store.Update(func(s *lifecycle.Store) {
		s.MaxClients = &o.maxClients
		if o.slotsGiven {
			if s.Wrapper == nil {
				s.Wrapper = &lifecycle.WrapperSettings{}
			}
			slots := int(o.workerSlots)
			s.Wrapper.Slots = &slots
		}
	})
	var dir string
	if err == nil {
		dir, err = home.Bin()
	}
	if err != nil {
		log.Error().Err(err).Msg("no wrapper")
		return
	}
	bin := wrapper.Bin{Dir: dir}
	script, err := storeScript(home, bin, store, reach(addr))
	if err == nil {
		err = bin.Write(script)
	}
	switch {
	case err == nil:
		log.Info().Str("path", bin.Script(store.Slug)).Msg("wrapper written")
		for _, warning := range warnings(script, store) {
			log.Warn().Msg(warning)
		}
	case errors.Is(err, wrapper.ErrNewer):
		log.Info().Err(err).Msg("wrapper")
	case bin.DropOld(store.Slug):
		log.Error().Err(err).Msg("the wrapper was out of date and could not be written anew, so it is gone")
	default:
		log.Info().Err(err).Msg("no wrapper written")
	}
}
