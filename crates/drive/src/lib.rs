//! A computational storage drive: transport, controller, namespaces, media
