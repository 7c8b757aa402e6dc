# The outputs of the module, which describes them.

output "scope" { value = module.orderonce.scope }
output "order_queue_url" { value = module.orderonce.order_queue_url }
output "refund_queue_url" { value = module.orderonce.refund_queue_url }
output "queues" { value = module.orderonce.queues }
output "tables" { value = module.orderonce.tables }
output "secrets" { value = module.orderonce.secrets }
output "apis" { value = module.orderonce.apis }
output "orders_table" { value = module.orderonce.orders_table }
output "orders_stream_arn" { value = module.orderonce.orders_stream_arn }
output "webhook_url" { value = module.orderonce.webhook_url }
output "intake_url" { value = module.orderonce.intake_url }
output "intake_caller_policy" { value = module.orderonce.intake_caller_policy }
output "event_bus_name" { value = module.orderonce.event_bus_name }
output "event_bus_arn" { value = module.orderonce.event_bus_arn }
output "event_archive_arn" { value = module.orderonce.event_archive_arn }
output "event_source" { value = module.orderonce.event_source }
output "paid_queue_url" { value = module.orderonce.paid_queue_url }
output "functions" { value = module.orderonce.functions }
output "log_groups" { value = module.orderonce.log_groups }
output "event_source_mapping_uuid" { value = module.orderonce.event_source_mapping_uuid }
output "refund_event_source_mapping_uuid" { value = module.orderonce.refund_event_source_mapping_uuid }
output "dashboard" { value = module.orderonce.dashboard }
output "operator_read_policy_arn" { value = module.orderonce.operator_read_policy_arn }
output "operator_repair_policy_arn" { value = module.orderonce.operator_repair_policy_arn }
output "operator_environment" { value = module.orderonce.operator_environment }
